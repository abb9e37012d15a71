; What only the JavaScript grammar has; see ecma.scm for the rest.

; --- definitions
(class_declaration name: (identifier) @name) @definition.class
(lexical_declaration . (variable_declarator name: (identifier) @name value: (class body: (_) @body))) @definition.class
(field_definition property: (property_identifier) @name value: [
  (arrow_function body: (_) @body)
  (function_expression body: (_) @body)
]) @definition.method

; --- bases
(class_heritage (identifier) @base @reference)
(class_heritage (member_expression property: (property_identifier) @base @reference))
