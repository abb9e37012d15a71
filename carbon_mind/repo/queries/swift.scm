; The first pattern that names a node decides its kind. An extension adds to a type and defines none.

; --- definitions
(protocol_declaration name: (type_identifier) @name) @definition.interface
(class_declaration "enum" name: (type_identifier) @name) @definition.enum
(class_declaration "struct" name: (type_identifier) @name) @definition.struct
(class_declaration name: (type_identifier) @name) @definition.class
; nearly every function is a method, and a pattern for each place would cost 0.2 s to compile
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(function_declaration name: (simple_identifier) @name) @definition.method
(typealias_declaration name: (type_identifier) @name) @definition.type
(source_file (property_declaration name: (pattern bound_identifier: (simple_identifier) @name) "=" @body) @definition.constant)

; --- signatures
(attribute) @skip
(function_declaration default_value: (_) @default)
(init_declaration default_value: (_) @default)

; --- bases
(inheritance_specifier inherits_from: (user_type (type_identifier) @base @reference .))

; --- references
(type_parameter . (type_identifier) @own)
(type_identifier) @reference
(call_expression . (simple_identifier) @reference)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @reference)))
(navigation_expression target: (simple_identifier) @component)

; --- imports: a module, or one thing of it
(import_declaration (identifier) @import)

(comment) @comment
(multiline_comment) @comment
