; The first pattern that names a node decides its kind.

; --- definitions
(class_definition name: (identifier) @name) @definition.class
(object_definition name: (identifier) @name) @definition.class
(trait_definition name: (identifier) @name) @definition.trait
(enum_definition name: (identifier) @name) @definition.enum
(type_definition name: (type_identifier) @name) @definition.type
(template_body (function_definition name: (_) @name) @definition.method)
(template_body (function_declaration name: (_) @name) @definition.method)
(function_definition name: (_) @name) @definition.function
(object_definition (template_body (val_definition pattern: (identifier) @name value: (_) @body) @definition.constant))

; --- signatures
(annotation) @skip
(parameter default_value: (_) @default)
(class_parameter default_value: (_) @default)

; --- bases
(extends_clause (type_identifier) @base)
(extends_clause (generic_type type: (type_identifier) @base))

; --- references
(type_parameters name: (identifier) @own)
(type_identifier) @reference
(call_expression function: (identifier) @reference)
(call_expression function: (field_expression field: (identifier) @reference))
(call_expression function: (generic_function function: (identifier) @reference))
(call_expression function: (field_expression value: (identifier) @component))
(field_expression value: (identifier) @component)
(infix_expression operator: (identifier) @reference)

; --- imports: up to the first brace
(import_declaration) @import

(comment) @comment
(block_comment) @comment
