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

; --- imports
(call !receiver method: (identifier) @importer arguments: (argument_list . (string (string_content) @import)))

(comment) @comment
