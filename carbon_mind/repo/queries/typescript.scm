; What only the TypeScript grammars have; see ecma.scm for the rest.

; --- definitions
(class_declaration name: (type_identifier) @name) @definition.class
(abstract_class_declaration name: (type_identifier) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(type_alias_declaration name: (type_identifier) @name) @definition.type
(internal_module name: (_) @name) @definition.module
(module name: (identifier) @name) @definition.module
(function_signature name: (identifier) @name) @definition.function
(method_signature name: (property_identifier) @name) @definition.method
(abstract_method_signature name: (property_identifier) @name) @definition.method
(public_field_definition name: (property_identifier) @name value: (_ body: (_) @body)) @definition.method

; --- signatures
(required_parameter value: (_) @default)
(optional_parameter value: (_) @default)

; --- bases
(extends_clause value: (identifier) @base @reference)
(extends_clause value: (member_expression property: (property_identifier) @base @reference))
(implements_clause [
  (type_identifier) @base
  (generic_type name: (type_identifier) @base)
  (generic_type name: (nested_type_identifier name: (type_identifier) @base))
  (nested_type_identifier name: (type_identifier) @base)
])
(extends_type_clause type: [
  (type_identifier) @base
  (generic_type name: (type_identifier) @base)
  (generic_type name: (nested_type_identifier name: (type_identifier) @base))
  (nested_type_identifier name: (type_identifier) @base)
])

; --- references
(type_parameter name: (type_identifier) @own)
(type_identifier) @reference

; --- imports
(import_require_clause source: (string (string_fragment) @import))
