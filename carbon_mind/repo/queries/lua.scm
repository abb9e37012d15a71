; The first pattern that names a node decides its kind. A table that is called by its own name is a module by habit only.

; --- definitions
(function_declaration name: (method_index_expression method: (identifier) @name) (parameters) . (_) @body) @definition.method
(function_declaration name: (method_index_expression method: (identifier) @name)) @definition.method
(function_declaration name: (dot_index_expression field: (identifier) @name) (parameters) . (_) @body) @definition.function
(function_declaration name: (dot_index_expression field: (identifier) @name)) @definition.function
(function_declaration name: (identifier) @name (parameters) . (_) @body) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(chunk (assignment_statement
  (variable_list . name: (dot_index_expression field: (identifier) @name))
  (expression_list . value: (function_definition parameters: (_) body: (_) @body))) @definition.function)

; --- references
(function_call name: (identifier) @reference)
(function_call name: (dot_index_expression field: (identifier) @reference))
(function_call name: (method_index_expression method: (identifier) @reference))

; --- imports
(function_call name: (identifier) @importer arguments: (arguments . (string content: (string_content) @import)))

(comment) @comment
