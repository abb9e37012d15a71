; What only the JavaScript grammar has; see ecma.scm for the rest.

; --- definitions
(class_declaration name: (identifier) @name) @definition.class
(field_definition property: (property_identifier) @name value: (_ body: (_) @body)) @definition.method

; --- bases
(class_heritage (identifier) @base @reference)
(class_heritage (member_expression property: (property_identifier) @base @reference))
