"""Follows gold from the source document to the prompt: access, spans, identities, journeys, recomputed fusion."""
