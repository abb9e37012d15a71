; The first pattern that names a node decides its kind.

; --- definitions
(variable_declaration (identifier) @name . "=" . (struct_declaration "{" @body)) @definition.struct
(variable_declaration (identifier) @name . "=" . (enum_declaration "{" @body)) @definition.enum
(variable_declaration (identifier) @name . "=" . (union_declaration "{" @body)) @definition.struct
(struct_declaration (function_declaration name: (identifier) @name) @definition.method)
(function_declaration name: (identifier) @name) @definition.function

; --- references
(call_expression function: (identifier) @reference)
(call_expression function: (field_expression member: (identifier) @reference))
(struct_initializer . (identifier) @reference)
(parameter type: (identifier) @reference)
(parameter type: (pointer_type (identifier) @reference))
(error_union_type (identifier) @reference)
(field_expression object: (identifier) @component)

; --- imports
(builtin_function (builtin_identifier) @importer (arguments . (string (string_content) @import)))

(comment) @comment
