"""What users see: tables, pages, charts, progress, formatted values, and error messages."""
