; The first pattern that names a node decides its kind.

; --- definitions
(function_declaration name: (identifier) @name) @definition.function
(method_declaration name: (field_identifier) @name) @definition.method
; in a group, the signature starts at the name; alone, at the keyword
(type_declaration "(" (type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @definition.struct)
(type_declaration (type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body))) @definition.struct
(type_declaration "(" (type_spec name: (type_identifier) @name type: (interface_type "{" @body)) @definition.interface)
(type_declaration (type_spec name: (type_identifier) @name type: (interface_type "{" @body))) @definition.interface
(type_declaration "(" [(type_spec name: (type_identifier) @name) (type_alias name: (type_identifier) @name)] @definition.type)
(type_declaration [(type_spec name: (type_identifier) @name) (type_alias name: (type_identifier) @name)]) @definition.type
(interface_type (method_elem name: (field_identifier) @name) @definition.method)
(const_declaration "(" (const_spec name: (identifier) @name value: (_) @body) @definition.constant)
(const_declaration "(" (const_spec name: (identifier) @name) @definition.constant)
(const_declaration (const_spec name: (identifier) @name value: (_) @body)) @definition.constant

; --- signatures
(struct_type (field_declaration_list (field_declaration)) @inner)

; --- bases: embedded fields and embedded interfaces
(field_declaration !name type: [
  (type_identifier) @base
  (qualified_type name: (type_identifier) @base)
  (generic_type type: (type_identifier) @base)
  (generic_type type: (qualified_type name: (type_identifier) @base))
])
(interface_type (type_elem . (type_identifier) @base .))
(interface_type (type_elem . (qualified_type name: (type_identifier) @base) .))

; --- references
(call_expression function: (identifier) @reference)
(call_expression function: (selector_expression field: (field_identifier) @reference))
(call_expression function: (index_expression operand: (identifier) @reference))
(call_expression function: (index_expression operand: (selector_expression field: (field_identifier) @reference)))
(type_identifier) @reference

; --- imports
(import_spec path: (interpreted_string_literal (interpreted_string_literal_content) @import))
(import_spec path: (raw_string_literal (raw_string_literal_content) @import))

; --- packages
(package_clause (package_identifier) @package)

; --- tests that are switched off
(function_declaration name: (identifier) @off.name body: (block (statement_list (expression_statement (call_expression
  function: (selector_expression operand: (identifier)) @off.how
  arguments: (argument_list) @off.arguments
) @off)) @off.body))

(comment) @comment
