"""NetworkAttachmentDefinitions: which bridge a card of a machine is put into."""
