; definitions
(function_definition name: (word) @name) @definition.function

; uses
(command name: (command_name (word) @reference))
(command name: (command_name (word) @_source) . argument: (word) @import (#any-of? @_source "source" "."))

; comments
(comment) @comment
