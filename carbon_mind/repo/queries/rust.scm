; definitions
(struct_item name: (type_identifier) @name) @definition.struct
(enum_item name: (type_identifier) @name) @definition.enum
(union_item name: (type_identifier) @name) @definition.struct
(trait_item name: (type_identifier) @name) @definition.trait
(type_item name: (type_identifier) @name) @definition.type
(mod_item name: (identifier) @name body: (_)) @definition.module
(macro_definition name: (identifier) @name) @definition.macro
(source_file (function_item name: (identifier) @name) @definition.function)
(mod_item body: (declaration_list (function_item name: (identifier) @name) @definition.function))
(impl_item body: (declaration_list (function_item name: (identifier) @name) @definition.method))
(trait_item body: (declaration_list (function_item name: (identifier) @name) @definition.method))
(trait_item body: (declaration_list (function_signature_item name: (identifier) @name) @definition.method))
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant

; uses
(call_expression function: (identifier) @reference)
(call_expression function: (scoped_identifier name: (identifier) @reference))
(call_expression function: (field_expression field: (field_identifier) @reference))
(type_identifier) @reference
(macro_invocation macro: (identifier) @reference)
(impl_item trait: (type_identifier) @base)
(impl_item trait: (generic_type type: (type_identifier) @base))
(impl_item trait: (scoped_type_identifier name: (type_identifier) @base))
(use_declaration argument: (_) @import)
(mod_item name: (identifier) @import !body)

; comments
[(line_comment) (block_comment)] @comment
