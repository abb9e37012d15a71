; definitions
(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method

; uses
(method_invocation name: (identifier) @reference)
(type_identifier) @reference
(superclass (type_identifier) @base)
(superclass (generic_type (type_identifier) @base))
(super_interfaces (type_list (type_identifier) @base))
(super_interfaces (type_list (generic_type (type_identifier) @base)))
(marker_annotation name: (identifier) @reference)
(annotation name: (identifier) @reference)
(import_declaration (scoped_identifier) @import)

; comments
[(line_comment) (block_comment)] @comment
