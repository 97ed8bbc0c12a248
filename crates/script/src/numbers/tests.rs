//! Every number in `ErrorCodes` is the number of some error.

use pleiad_model::Kind;

use super::error_number;

#[test]
fn error_numbers_match_error_codes() {
    let table = [
        (Kind::Invalid, 400),
        (Kind::Forbidden, 403),
        (Kind::NotFound, 404),
        (Kind::Conflict, 409),
        (Kind::PreconditionFailed, 412),
        (Kind::TooLarge, 413),
        (Kind::RetryWith, 449),
        (Kind::Internal, 500),
    ];
    for (kind, want) in table {
        assert_eq!(error_number(kind), want, "{kind:?}");
    }
}
