; The first pattern that names a node decides its kind.

; --- definitions
(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(annotation_type_element_declaration name: (identifier) @name "default" @body) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(field_declaration (modifiers "public" "static" "final") declarator: (variable_declarator name: (identifier) @name value: (_) @body @default)) @definition.constant
(constant_declaration declarator: (variable_declarator name: (identifier) @name value: (_) @body @default)) @definition.constant

; --- signatures
(marker_annotation) @skip
(annotation) @skip

; --- bases
(superclass [
  (type_identifier) @base
  (generic_type . (type_identifier) @base)
  (scoped_type_identifier (type_identifier) @base .)
  (generic_type . (scoped_type_identifier (type_identifier) @base .))
])
(super_interfaces (type_list [
  (type_identifier) @base
  (generic_type . (type_identifier) @base)
  (scoped_type_identifier (type_identifier) @base .)
  (generic_type . (scoped_type_identifier (type_identifier) @base .))
]))
(extends_interfaces (type_list [
  (type_identifier) @base
  (generic_type . (type_identifier) @base)
  (scoped_type_identifier (type_identifier) @base .)
  (generic_type . (scoped_type_identifier (type_identifier) @base .))
]))

; --- references
(type_parameter (type_identifier) @own)
(method_invocation name: (identifier) @reference)
(method_invocation object: (identifier) @component)
(field_access object: (identifier) @component)
(method_reference . (identifier) @component)
(method_reference (identifier) @reference .)
(marker_annotation name: (identifier) @reference)
(annotation name: (identifier) @reference)
; in upper case, because the parts of a qualified name are type identifiers too
(type_identifier) @component

; --- imports
(import_declaration) @import

; --- packages
(package_declaration [(identifier) (scoped_identifier)] @package)

; --- tests that are switched off
(method_declaration (modifiers [
  (marker_annotation name: (identifier) @off.how)
  (annotation name: (identifier) @off.how arguments: (annotation_argument_list) @off.arguments)
] @off @off.next))
(class_declaration (modifiers [
  (marker_annotation name: (identifier) @off.how)
  (annotation name: (identifier) @off.how arguments: (annotation_argument_list) @off.arguments)
] @off @off.next))

(line_comment) @comment
(block_comment) @comment
