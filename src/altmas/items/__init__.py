"""What a person is shown of a point: texts, values, images; one way for page, terminal, report and exports."""
