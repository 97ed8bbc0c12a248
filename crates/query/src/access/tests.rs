//! Placeholder until the table of conditions below.
