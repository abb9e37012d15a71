; definitions
(class_declaration name: (type_identifier) @name) @definition.class
(abstract_class_declaration name: (type_identifier) @name) @definition.class
(interface_declaration name: (type_identifier) @name) @definition.interface
(type_alias_declaration name: (type_identifier) @name) @definition.type
(enum_declaration name: (identifier) @name) @definition.enum
(internal_module name: (identifier) @name) @definition.module
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(function_signature name: (identifier) @name) @definition.function
(class_body (method_definition name: (property_identifier) @name) @definition.method)
(class_body (abstract_method_signature name: (property_identifier) @name) @definition.method)
(program (lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function)))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name value: [(object) (array) (string) (number) (call_expression) (new_expression) (as_expression)]) @definition.constant)))

; uses
(call_expression function: (identifier) @reference)
(call_expression function: (member_expression property: (property_identifier) @reference))
(new_expression constructor: (identifier) @reference)
(type_annotation (type_identifier) @reference)
(type_arguments (type_identifier) @reference)
(generic_type name: (type_identifier) @reference)
(union_type (type_identifier) @reference)
(array_type (type_identifier) @reference)
(extends_clause value: (identifier) @base @reference)
(implements_clause (type_identifier) @base @reference)
(extends_type_clause (type_identifier) @base @reference)
(arguments (identifier) @reference)
(jsx_opening_element name: (identifier) @reference)
(jsx_self_closing_element name: (identifier) @reference)
(import_specifier name: (identifier) @reference)
(import_statement source: (string) @import)
(export_statement source: (string) @import)
(call_expression function: (identifier) @_require arguments: (arguments . (string) @import) (#eq? @_require "require"))
(required_parameter value: (_) @default)
(optional_parameter value: (_) @default)

; comments
(comment) @comment
