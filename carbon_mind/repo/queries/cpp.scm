; What C++ adds to c.scm, which follows it. The first pattern that names a node decides its kind.

; --- definitions
(template_declaration (class_specifier name: (type_identifier) @name body: (_) @body)) @definition.class
(template_declaration (struct_specifier name: (type_identifier) @name body: (_) @body)) @definition.struct
(class_specifier name: (type_identifier) @name body: (_)) @definition.class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @definition.class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @definition.struct
(template_declaration (concept_definition name: (identifier) @name . (_) @body)) @definition.type
(alias_declaration name: (type_identifier) @name) @definition.type
(namespace_definition name: [(namespace_identifier) (nested_namespace_specifier)] @name) @definition.module

; constructors, with the initializers cut off
(field_declaration_list (function_definition declarator: (function_declarator declarator: (identifier) @name) (field_initializer_list) @body) @definition.method)
(field_declaration_list (function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition.method)
(field_declaration_list (template_declaration (function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition.method))
(function_definition declarator: (function_declarator declarator: (qualified_identifier) @name) (field_initializer_list) @body) @definition.method

(template_declaration (function_definition declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (reference_declarator (function_declarator declarator: (identifier) @name))
] body: (_) @body)) @definition.function
(function_definition declarator: (reference_declarator (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition declarator: [
  (function_declarator declarator: [(field_identifier) (qualified_identifier)] @name)
  (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (qualified_identifier)] @name))
  (reference_declarator (function_declarator declarator: [(field_identifier) (qualified_identifier)] @name))
]) @definition.method
; pure virtual: no other file has the body
(field_declaration declarator: [
  (function_declarator declarator: (field_identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
  (reference_declarator (function_declarator declarator: (field_identifier) @name))
] default_value: (_) @body) @definition.method
(declaration (type_qualifier) declarator: (init_declarator declarator: (identifier) @name value: (_) @body @default)) @definition.constant

; --- scope
(namespace_definition !name body: (_) @enclosed)

; --- signatures
(class_specifier body: (_) @skip)
(optional_parameter_declaration default_value: (_) @default)
(optional_type_parameter_declaration default_type: (_) @default)
(attribute_declaration) @skip
(default_method_clause) @skip
(delete_method_clause) @skip

; --- bases
(base_class_clause [
  (type_identifier) @base
  (template_type name: (type_identifier) @base)
  (qualified_identifier name: (type_identifier) @base)
  (qualified_identifier name: (template_type name: (type_identifier) @base))
  (qualified_identifier name: (qualified_identifier name: (type_identifier) @base))
])

; --- references
(call_expression function: (qualified_identifier name: (identifier) @reference))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @reference)))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @reference)))
(template_function name: (identifier) @reference)
(qualified_identifier scope: (namespace_identifier) @reference)
