; definitions
(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(struct_declaration name: (identifier) @name) @definition.struct
(interface_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(delegate_declaration name: (identifier) @name) @definition.type
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(namespace_declaration name: (_) @name) @definition.module

; uses
(invocation_expression function: (identifier) @reference)
(invocation_expression function: (member_access_expression name: (identifier) @reference))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @reference)))
(object_creation_expression type: (identifier) @reference)
(object_creation_expression type: (generic_name (identifier) @reference))
(parameter type: (identifier) @reference)
(variable_declaration type: (identifier) @reference)
(variable_declaration type: (generic_name (identifier) @reference))
(property_declaration type: (identifier) @reference)
(method_declaration returns: (identifier) @reference)
(type_argument_list (identifier) @reference)
(attribute name: (identifier) @reference)
(base_list (identifier) @base @reference)
(base_list (generic_name (identifier) @base @reference))
(using_directive [(identifier) (qualified_name)] @import)

; comments
(comment) @comment
