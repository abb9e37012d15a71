; The first pattern that names a node decides its kind.

; --- definitions
(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(struct_declaration name: (identifier) @name) @definition.struct
(interface_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(delegate_declaration name: (identifier) @name) @definition.type
(namespace_declaration name: (_) @name) @definition.module
(file_scoped_namespace_declaration name: (_) @name) @definition.module
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name (constructor_initializer) @body) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(field_declaration (modifier "public") (modifier "const") (variable_declaration (variable_declarator name: (identifier) @name "=" . (_) @body @default))) @definition.constant
(field_declaration (modifier "internal") (modifier "const") (variable_declaration (variable_declarator name: (identifier) @name "=" . (_) @body @default))) @definition.constant

; --- signatures
(attribute_list) @skip
(parameter name: (identifier) "=" . (_) @default)

; --- bases
(base_list [
  (identifier) @base @reference
  (generic_name . (identifier) @base)
  (qualified_name name: (identifier) @base @reference)
  (qualified_name name: (generic_name . (identifier) @base))
  (primary_constructor_base_type type: (identifier) @base @reference)
  (primary_constructor_base_type type: (generic_name . (identifier) @base))
])

; --- references
(invocation_expression function: (identifier) @reference)
(invocation_expression function: (member_access_expression name: (identifier) @reference))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @reference)))
(member_access_expression expression: (identifier) @component)
(object_creation_expression type: (identifier) @reference)
(object_creation_expression type: (qualified_name name: (identifier) @reference))
(generic_name . (identifier) @reference)
(type_argument_list (identifier) @reference)
(type_parameter_constraint type: (identifier) @reference)
(variable_declaration type: (identifier) @reference)
(variable_declaration type: (qualified_name name: (identifier) @reference))
(parameter type: (identifier) @reference)
(parameter type: (qualified_name name: (identifier) @reference))
(nullable_type type: (identifier) @reference)
(array_type type: (identifier) @reference)
(method_declaration returns: (identifier) @reference)
(property_declaration type: (identifier) @reference)
(indexer_declaration type: (identifier) @reference)
(delegate_declaration type: (identifier) @reference)
(operator_declaration type: (identifier) @reference)
(cast_expression type: (identifier) @reference)
(typeof_expression type: (identifier) @reference)
(as_expression right: (identifier) @reference)
(is_expression right: (identifier) @reference)
(declaration_pattern type: (identifier) @reference)
(catch_declaration type: (identifier) @reference)
(attribute name: (identifier) @reference)
(attribute name: (qualified_name name: (identifier) @reference))

; --- imports; an alias gives what it stands for
(using_directive !name [(identifier) (qualified_name)] @import)
(using_directive name: (identifier) [(identifier) (qualified_name) (generic_name)] @import .)

; --- packages
(namespace_declaration name: (_) @package body: (_) @package.body)
(file_scoped_namespace_declaration name: (_) @package)

; --- tests that are switched off
(method_declaration (attribute_list (attribute name: (identifier) @off.how (attribute_argument_list)? @off.arguments) @off @off.next))
(class_declaration (attribute_list (attribute name: (identifier) @off.how (attribute_argument_list)? @off.arguments) @off @off.next))

(comment) @comment
