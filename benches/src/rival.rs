//! Other people's servers.
