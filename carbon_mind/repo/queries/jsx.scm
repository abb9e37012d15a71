; Elements of JSX; those in lower case are HTML and no references.

(jsx_opening_element name: (identifier) @component)
(jsx_opening_element name: (member_expression property: (property_identifier) @component))
(jsx_self_closing_element name: (identifier) @component)
(jsx_self_closing_element name: (member_expression property: (property_identifier) @component))
