; definitions
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method

; uses
(function_call_expression function: (name) @reference)
(member_call_expression name: (name) @reference)
(scoped_call_expression name: (name) @reference)
(scoped_call_expression scope: (name) @reference)
(object_creation_expression (name) @reference)
(named_type (name) @reference)
(use_declaration (name) @reference)
(base_clause (name) @base @reference)
(class_interface_clause (name) @base @reference)
(namespace_use_clause [(qualified_name) (name)] @import)
(simple_parameter default_value: (_) @default)
(property_promotion_parameter default_value: (_) @default)

; comments
(comment) @comment
