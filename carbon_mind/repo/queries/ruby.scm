; The first pattern that names a node decides its kind.

; --- definitions
(class name: [(constant) @name (scope_resolution name: (constant) @name)]) @definition.class
(module name: [(constant) @name (scope_resolution name: (constant) @name)]) @definition.module
(program (method name: (_) @name) @definition.function)
(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(assignment left: (constant) @name right: (_) @body) @definition.constant

; --- signatures
(optional_parameter value: (_) @default)
(keyword_parameter value: (_) @default)

; --- bases: the superclass and mixed-in modules
(superclass [(constant) @base (scope_resolution name: (constant) @base)])
(call !receiver method: (identifier) @mixer arguments: (argument_list [
  (constant) @base
  (scope_resolution name: (constant) @base)
]))

; --- references
(call method: (identifier) @reference)
(constant) @reference

; --- imports, and tests that are switched off
(call !receiver method: (identifier) @importer @off.how arguments: (argument_list . (string (string_content) @import @off.name))) @off
(call !receiver method: (identifier) @off.how arguments: (argument_list . (string (string_content) @off.name)) block: (do_block) @off.block) @off
(call !receiver method: (identifier) @off.in arguments: (argument_list . (string (string_content) @off.name)) block: [
  (do_block body: (body_statement [
    (identifier) @off.how
    (call !receiver method: (identifier) @off.how arguments: (argument_list) @off.arguments)
  ] @off) @off.body)
  (block body: (block_body [
    (identifier) @off.how
    (call !receiver method: (identifier) @off.how arguments: (argument_list) @off.arguments)
  ] @off) @off.body)
])
(method name: (identifier) @off.name body: (body_statement [
  (identifier) @off.how
  (call !receiver method: (identifier) @off.how arguments: (argument_list) @off.arguments)
] @off) @off.body)

(comment) @comment
