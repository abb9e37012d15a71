; The first pattern that names a node decides its kind.

; --- definitions
(function_definition name: (word) @name) @definition.function
(declaration_command (variable_assignment name: (variable_name) @name value: (_) @body @default)) @definition.constant

; --- references
(command name: (command_name (word) @reference))

; --- imports
(command name: (command_name (word) @importer) . argument: [(word) (string) (raw_string) (concatenation)] @import)

(comment) @comment
