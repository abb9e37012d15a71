; The first pattern that names a node decides its kind.

; --- definitions
(class_definition name: (identifier) @name) @definition.class
(class_definition body: (block (function_definition name: (identifier) @name) @definition.method))
(class_definition body: (block (decorated_definition definition: (function_definition name: (identifier) @name) @definition.method)))
(function_definition name: (identifier) @name) @definition.function
(module (expression_statement (assignment left: (identifier) @name right: (_) @body) @definition.constant))
(module (type_alias_statement left: (type (identifier) @name)) @definition.type)
(module (type_alias_statement left: (type (generic_type (identifier) @name))) @definition.type)

; --- signatures
(default_parameter value: (_) @default)
(typed_default_parameter value: (_) @default)

; --- bases
(class_definition superclasses: (argument_list [
  (identifier) @base @reference
  (attribute attribute: (identifier) @base @reference)
  (subscript value: (identifier) @base @reference)
  (subscript value: (attribute attribute: (identifier) @base @reference))
]))
(class_definition superclasses: (argument_list (subscript subscript: (identifier) @reference)))

; --- references
(call function: (identifier) @reference)
(call function: (attribute attribute: (identifier) @reference))
(call function: (attribute object: (identifier) @component))
(decorator (identifier) @reference)
(decorator (attribute attribute: (identifier) @reference))
(type (identifier) @reference)
(type (attribute attribute: (identifier) @reference))
(type (binary_operator (identifier) @reference))
(type (binary_operator (binary_operator (identifier) @reference)))
(type (binary_operator (attribute attribute: (identifier) @reference)))
(type (subscript value: (identifier) @reference))
(type (subscript value: (attribute attribute: (identifier) @reference)))
(generic_type (identifier) @reference)
(member_type (identifier) @reference .)
(except_clause value: (identifier) @reference)
(except_clause value: (attribute attribute: (identifier) @reference))
(except_clause value: (as_pattern (identifier) @reference))
(except_clause value: (as_pattern (tuple (identifier) @reference)))
(except_clause value: (tuple (identifier) @reference))
(raise_statement (identifier) @reference)
(class_pattern (dotted_name (identifier) @reference .))

; --- imports; `from __future__` is a switch of the compiler and left out
(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import)
(import_from_statement module_name: (_) @import.from name: [(dotted_name) @import.name (aliased_import name: (dotted_name) @import.name)])

; --- tests that are switched off
(decorator [
  [(attribute) (identifier)] @off.how
  (call function: [(attribute) (identifier)] @off.how arguments: (argument_list) @off.arguments)
]) @off @off.next
(module (expression_statement (assignment left: (identifier) @off.key right: [
  (attribute) @off.how
  (call function: (attribute) @off.how arguments: (argument_list) @off.arguments)
  (list [(attribute) @off.how (call function: (attribute) @off.how arguments: (argument_list) @off.arguments)])
]) @off))

(comment) @comment
