; definitions
(class name: [(constant) (scope_resolution)] @name) @definition.class
(module name: [(constant) (scope_resolution)] @name) @definition.module
(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(assignment left: (constant) @name) @definition.constant

; uses
(call method: (identifier) @reference)
(call receiver: (constant) @reference)
(scope_resolution name: (constant) @reference)
(superclass (constant) @base @reference)
(superclass (scope_resolution name: (constant) @base))
(call method: (identifier) @_require arguments: (argument_list . (string (string_content) @import)) (#any-of? @_require "require" "require_relative" "load"))
(optional_parameter value: (_) @default)
(keyword_parameter value: (_) @default)

; comments
(comment) @comment
