; What JavaScript and TypeScript share. The first pattern that names a node decides its kind.

; --- definitions
(method_definition name: (property_identifier) @name) @definition.method
(lexical_declaration . (variable_declarator name: (identifier) @name value: (class body: (_) @body))) @definition.class
; what else has a body is a function: arrow, expression or generator; a pattern for each costs 10 ms to compile
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(lexical_declaration . (variable_declarator name: (identifier) @name value: (_ body: (_) @body))) @definition.function
(variable_declaration . (variable_declarator name: (identifier) @name value: (_ body: (_) @body))) @definition.function
(variable_declarator name: (identifier) @name value: (_ body: (_) @body)) @definition.function
(assignment_expression left: (member_expression property: (property_identifier) @name) right: (_ body: (_) @body)) @definition.function
(export_statement declaration: (lexical_declaration kind: "const" . (variable_declarator name: (identifier) @name value: (_) @body)) @definition.constant)
(export_statement declaration: (lexical_declaration kind: "const" (variable_declarator name: (identifier) @name value: (_) @body) @definition.constant))

; --- signatures
(object_assignment_pattern right: (_) @default)
(assignment_pattern right: (_) @default)
(decorator) @skip

; --- references
(call_expression function: [(identifier) @reference (member_expression property: (property_identifier) @reference)])
(call_expression function: (member_expression object: (identifier) @component))
(new_expression constructor: [(identifier) @reference (member_expression property: (property_identifier) @reference)])
(decorator [(identifier) @reference (member_expression property: (property_identifier) @reference)])

; --- imports
(import_statement source: (string (string_fragment) @import))
(export_statement source: (string (string_fragment) @import))
; and tests that are switched off
(call_expression function: _ @importer @off.how arguments: (arguments . [
  (string (string_fragment) @import @off.name)
  (template_string . (string_fragment) @import @off.name .)
])) @off

(comment) @comment
