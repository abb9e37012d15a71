; The first pattern that names a node decides its kind.

; --- definitions
(struct_item name: (type_identifier) @name) @definition.struct
(union_item name: (type_identifier) @name) @definition.struct
(enum_item name: (type_identifier) @name) @definition.enum
(trait_item name: (type_identifier) @name) @definition.trait
(source_file (type_item name: (type_identifier) @name) @definition.type)
(type_item (visibility_modifier) name: (type_identifier) @name) @definition.type
(impl_item trait: (_) body: (declaration_list (function_item name: (identifier) @name) @definition.method @shared))
(impl_item body: (declaration_list (function_item name: (identifier) @name) @definition.method))
(trait_item body: (declaration_list (function_item name: (identifier) @name) @definition.method @shared))
(trait_item body: (declaration_list (function_signature_item name: (identifier) @name) @definition.method @shared))
(function_item name: (identifier) @name) @definition.function
(macro_definition name: (identifier) @name . (macro_rule) @body) @definition.macro
(mod_item name: (identifier) @name body: (_)) @definition.module
(const_item (visibility_modifier) name: (identifier) @name value: (_) @body) @definition.constant
(static_item (visibility_modifier) name: (identifier) @name value: (_) @body) @definition.constant

; --- signatures
(attribute_item) @skip

; --- bases: implemented traits and supertraits
(impl_item trait: [
  (type_identifier) @base
  (scoped_type_identifier name: (type_identifier) @base)
  (generic_type type: (type_identifier) @base)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @base))
])
(trait_item bounds: (trait_bounds [
  (type_identifier) @base
  (scoped_type_identifier name: (type_identifier) @base)
  (generic_type type: (type_identifier) @base)
]))

; --- references
(associated_type name: (type_identifier) @own)
(type_item name: (type_identifier) @own)
(type_parameter name: (type_identifier) @own)
(call_expression function: [
  (identifier) @reference
  (field_expression field: (field_identifier) @reference)
  (scoped_identifier name: (identifier) @reference)
  (generic_function function: (identifier) @reference)
  (generic_function function: (field_expression field: (field_identifier) @reference))
  (generic_function function: (scoped_identifier name: (identifier) @reference))
])
(scoped_identifier path: (identifier) @component)
(scoped_identifier path: (scoped_identifier name: (identifier) @component))
(macro_invocation macro: (identifier) @reference)
(macro_invocation macro: (scoped_identifier name: (identifier) @reference))
(token_tree (identifier) @reference . (token_tree "("))
(type_identifier) @reference

; --- imports: `mod x;` names another file, and an attribute which
(use_declaration argument: (_) @import)
(extern_crate_declaration name: (identifier) @import)
(source_file (mod_item !body name: (identifier) @import.own) @import.item)
(source_file (mod_item name: (identifier) @import.in body: (declaration_list (mod_item !body name: (identifier) @import.own) @import.item)))
(attribute_item (attribute . (identifier) @key .)) @attribute
(attribute_item (attribute (identifier) @key value: [(string_literal) (raw_string_literal)] @value)) @attribute

(line_comment) @comment
(block_comment) @comment
