; The first pattern that names a node decides its kind.

; --- definitions
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
(namespace_definition name: (namespace_name) @name) @definition.module
(const_declaration (const_element (name) @name . (_) @body @default)) @definition.constant

; --- signatures
(attribute_list) @skip
(simple_parameter default_value: (_) @default)
(property_promotion_parameter default_value: (_) @default)

; --- bases: parents, interfaces and traits in use
(base_clause [(name) @base @reference (qualified_name (name) @base @reference .)])
(class_interface_clause [(name) @base @reference (qualified_name (name) @base @reference .)])
(use_declaration [(name) @base @reference (qualified_name (name) @base @reference .)])

; --- references
(function_call_expression function: (name) @reference)
(function_call_expression function: (qualified_name (name) @reference .))
(member_call_expression name: (name) @reference)
(nullsafe_member_call_expression name: (name) @reference)
(scoped_call_expression name: (name) @reference)
(scoped_call_expression scope: (name) @reference)
(scoped_call_expression scope: (qualified_name (name) @reference .))
(scoped_property_access_expression scope: (name) @reference)
(class_constant_access_expression . (name) @reference)
(class_constant_access_expression . (qualified_name (name) @reference .))
(object_creation_expression (name) @reference)
(object_creation_expression (qualified_name (name) @reference .))
(named_type (name) @reference)
(named_type (qualified_name (name) @reference .))
(binary_expression operator: "instanceof" right: (name) @reference)
(attribute (name) @reference)
(attribute (qualified_name (name) @reference .))

; --- imports
(namespace_use_declaration) @import
(require_expression (_) @import)
(require_once_expression (_) @import)
(include_expression (_) @import)
(include_once_expression (_) @import)

; --- packages
(namespace_definition name: (namespace_name) @package)

; --- tests that are switched off
(method_declaration name: (name) @off.name body: (compound_statement (expression_statement [
  (member_call_expression name: (name) @off.how arguments: (arguments) @off.arguments)
  (scoped_call_expression name: (name) @off.how arguments: (arguments) @off.arguments)
] @off)) @off.body)

(comment) @comment
