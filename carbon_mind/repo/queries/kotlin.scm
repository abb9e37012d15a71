; The first pattern that names a node decides its kind.

; --- definitions; a primary constructor belongs to the signature, the base classes do not end it
(class_declaration "interface" name: (identifier) @name (class_body)? @body) @definition.interface
(class_declaration (modifiers (class_modifier "enum")) name: (identifier) @name (enum_class_body)? @body) @definition.enum
(class_declaration name: (identifier) @name [(class_body) (enum_class_body)] @body) @definition.class
(class_declaration name: (identifier) @name) @definition.class
(object_declaration name: (identifier) @name (class_body)? @body) @definition.class
(class_body (function_declaration name: (identifier) @name (function_body) @body) @definition.method)
(class_body (function_declaration name: (identifier) @name) @definition.method)
(function_declaration name: (identifier) @name (function_body) @body) @definition.function
(function_declaration name: (identifier) @name) @definition.function
(type_alias type: (identifier) @name) @definition.type
(property_declaration (modifiers (property_modifier "const")) (variable_declaration . (identifier) @name) "=" @body) @definition.constant

; --- signatures
(annotation) @skip
(function_value_parameters (parameter) . "=" . (_) @default)
(class_parameter "=" (_) @default)

; --- bases
(delegation_specifier (user_type (identifier) @base @reference .))
(delegation_specifier (constructor_invocation (user_type . (identifier) @base @reference)))

; --- references
(user_type (identifier) @reference)
(call_expression . (identifier) @reference)
(call_expression . (navigation_expression (identifier) @reference .))
(navigation_expression . (identifier) @component)
(annotation (user_type (identifier) @reference))
(annotation (constructor_invocation (user_type (identifier) @reference)))
(type_parameter (identifier) @own)

; --- imports
(import (qualified_identifier) @import)

(line_comment) @comment
(block_comment) @comment
