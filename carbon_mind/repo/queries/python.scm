; definitions
(class_definition name: (identifier) @name) @definition.class
(module (function_definition name: (identifier) @name) @definition.function)
(module (decorated_definition definition: (function_definition name: (identifier) @name) @definition.function))
(class_definition body: (block (function_definition name: (identifier) @name) @definition.method))
(class_definition body: (block (decorated_definition definition: (function_definition name: (identifier) @name) @definition.method)))
(module (expression_statement (assignment left: (identifier) @name) @definition.constant) (#match? @name "^[A-Z][A-Z0-9_]+$"))

; uses
(call function: (identifier) @reference)
(call function: (attribute attribute: (identifier) @reference))
(type (identifier) @reference)
(type (generic_type (identifier) @reference))
(type (binary_operator (identifier) @reference))
(decorator (identifier) @reference)
(decorator (attribute attribute: (identifier) @reference))
(class_definition superclasses: (argument_list (identifier) @base @reference))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @base @reference)))
(import_from_statement name: (dotted_name (identifier) @reference))
(except_clause (identifier) @reference)
(argument_list (identifier) @reference)
(keyword_argument value: (identifier) @reference)
(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import)
(default_parameter value: (_) @default)
(typed_default_parameter value: (_) @default)

; comments
(comment) @comment
