//! Status codes: the status and substatus of each error kind in this protocol.

use http::StatusCode;
use pleiad_engine::{ScriptCause, ScriptError};
use pleiad_model::{Error, ExceededLimit, Kind, Object, Throttle, json};

use super::auth::AuthError;

/// Status, substatus and message of an error; the `code` in the body follows from the status.
#[derive(Debug)]
pub struct ErrorStatus {
    pub status: StatusCode,
    pub substatus: Option<u32>,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    /// Details for clients that can use them: the plan of a query that the client has to merge itself.
    pub additional_info: Option<String>,
    /// Why the request was throttled.
    pub throttle: Option<Box<Throttle>>,
}

impl ErrorStatus {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let (substatus, retry_after_ms, additional_info, throttle) = Default::default();
        ErrorStatus { status, substatus, message: message.into(), retry_after_ms, additional_info, throttle }
    }

    /// `{"code": "NotFound", "message": "…"}`, with the activity id that the log contains.
    pub fn body(&self, activity: &str) -> Vec<u8> {
        let message = format!("{}\r\nActivityId: {activity}", self.message);
        let mut out = Vec::new();
        let mut body = Object::new().with("code", code(self.status)).with("message", message);
        if let Some(info) = &self.additional_info {
            body.set("additionalErrorInfo", info.as_str());
        }
        json::write(&body.into(), &mut out);
        out
    }
}

impl From<Error> for ErrorStatus {
    fn from(error: Error) -> Self {
        let (status, substatus) = status_codes(error.kind);
        let retry_after_ms = match error.kind {
            Kind::Throttled { retry_after, .. } => u64::try_from(retry_after.as_millis()).ok(),
            _ => None,
        };
        let Error { message, throttle, .. } = error;
        ErrorStatus { status, substatus, message, retry_after_ms, additional_info: None, throttle }
    }
}

/// The substatus of a script that could not be compiled.
const SCRIPT_COMPILE_ERROR: u32 = 0xFFFF;

/// The number that a script throws becomes the substatus if it is an error status of the protocol.
impl From<&ScriptError> for ErrorStatus {
    fn from(error: &ScriptError) -> Self {
        let (status, substatus) = match error.cause {
            ScriptCause::Syntax => (StatusCode::BAD_REQUEST, Some(SCRIPT_COMPILE_ERROR)),
            ScriptCause::Thrown => {
                (StatusCode::BAD_REQUEST, error.number.filter(|n| (400..600).contains(n)).map(u32::from))
            }
            ScriptCause::OutOfMemory => (StatusCode::BAD_REQUEST, None),
            ScriptCause::TimedOut => (StatusCode::REQUEST_TIMEOUT, None),
            ScriptCause::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, None),
            ScriptCause::Busy => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        ErrorStatus { substatus, ..ErrorStatus::new(status, error.to_string()) }
    }
}

fn status_codes(kind: Kind) -> (StatusCode, Option<u32>) {
    match kind {
        Kind::Invalid => (StatusCode::BAD_REQUEST, None),
        Kind::NotFinite => (StatusCode::BAD_REQUEST, Some(4001)),
        Kind::KeyMismatch => (StatusCode::BAD_REQUEST, Some(1001)),
        Kind::CrossPartition => (StatusCode::BAD_REQUEST, Some(1004)),
        Kind::ContainerChanged => (StatusCode::BAD_REQUEST, Some(1024)),
        Kind::Forbidden | Kind::QuotaExceeded => (StatusCode::FORBIDDEN, None),
        Kind::KeyFull => (StatusCode::FORBIDDEN, Some(1014)),
        Kind::NotFound => (StatusCode::NOT_FOUND, Some(0)),
        Kind::SessionNotAvailable => (StatusCode::NOT_FOUND, Some(1002)),
        Kind::OwnerNotFound => (StatusCode::NOT_FOUND, Some(1003)),
        Kind::Conflict => (StatusCode::CONFLICT, None),
        Kind::Moved { .. } => (StatusCode::GONE, Some(1002)),
        Kind::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, None),
        Kind::FailedDependency => (StatusCode::FAILED_DEPENDENCY, None),
        Kind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, None),
        Kind::TimedOut => (StatusCode::REQUEST_TIMEOUT, None),
        Kind::Locked => (StatusCode::LOCKED, None),
        Kind::Throttled { over: ExceededLimit::Share, .. } => (StatusCode::TOO_MANY_REQUESTS, Some(3200)),
        Kind::Throttled { over: ExceededLimit::Bucket, .. } => (StatusCode::TOO_MANY_REQUESTS, Some(3212)),
        Kind::RetryWith | Kind::Outdated => (retry_with(), None),
        Kind::Unsupported => (StatusCode::NOT_IMPLEMENTED, None),
        Kind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
        Kind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, None),
    }
}

/// 449 is specific to Cosmos DB.
fn retry_with() -> StatusCode {
    StatusCode::from_u16(449).unwrap_or(StatusCode::CONFLICT)
}

impl From<AuthError> for ErrorStatus {
    fn from(error: AuthError) -> Self {
        const UNAUTHORIZED: StatusCode = StatusCode::UNAUTHORIZED;
        const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
        match error {
            AuthError::Missing => ErrorStatus::new(
                UNAUTHORIZED,
                "Required Header authorization is missing. Ensure a valid Authorization token is passed.",
            ),
            AuthError::Malformed(what) => {
                ErrorStatus::new(UNAUTHORIZED, format!("The authorization header cannot be read: {what}."))
            }
            AuthError::BadSignature { string_to_sign } => {
                ErrorStatus::new(UNAUTHORIZED, bad_signature(&string_to_sign))
            }
            AuthError::Skewed => ErrorStatus::new(
                FORBIDDEN,
                "The authorization token is not valid at the current time. Create another token and retry: the request's date differs from the server's clock by more than 15 minutes.",
            ),
            AuthError::ReadOnlyKey => {
                ErrorStatus::new(FORBIDDEN, "The given request is not permitted for the provided read-only key.")
            }
            AuthError::BadToken => ErrorStatus::new(
                UNAUTHORIZED,
                "The authorization token is not valid: it was not issued by this account, or was changed on its way.",
            ),
            AuthError::Expired => ErrorStatus::new(
                FORBIDDEN,
                "The authorization token has expired. Read the permission again for another.",
            ),
            AuthError::AadNotAccepted => ErrorStatus::new(
                UNAUTHORIZED,
                "The bearer token is not accepted: this server knows its account keys and the emulator's test token.",
            ),
            AuthError::Bearer(why) => {
                ErrorStatus::new(UNAUTHORIZED, format!("The authorization token is not valid: {why}."))
            }
            AuthError::UnknownKey => ErrorStatus::new(
                UNAUTHORIZED,
                "The authorization token is not valid: it was signed with a key that its issuer does not have.",
            ),
        }
    }
}

fn bad_signature(signed: &str) -> String {
    let shown = signed.replace('\n', "\\n");
    format!(
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built as per the protocol. Server used the following payload to sign: '{shown}'"
    )
}

/// The name of the status in the body.
fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        424 => "FailedDependency",
        429 => "TooManyRequests",
        449 => "RetryWith",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        _ => "InternalServerError",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_body_with_code_and_message() {
        let failure = ErrorStatus::from(Error::not_found("gone"));
        let body = String::from_utf8(failure.body("7")).unwrap();
        assert_eq!(body, r#"{"code":"NotFound","message":"gone\r\nActivityId: 7"}"#);
    }

    #[test]
    fn error_kinds_have_the_codes_that_sdks_act_on() {
        let of = |kind| {
            let failure = ErrorStatus::from(Error::new(kind, ""));
            (failure.status.as_u16(), failure.substatus.unwrap_or(0))
        };
        assert_eq!(of(Kind::KeyMismatch), (400, 1001));
        assert_eq!(of(Kind::ContainerChanged), (400, 1024));
        assert_eq!(of(Kind::OwnerNotFound), (404, 1003));
        assert_eq!(of(Kind::SessionNotAvailable), (404, 1002));
        assert_eq!(of(Kind::Moved { epoch: 1 }), (410, 1002));
        assert_eq!(of(Kind::TooLarge), (413, 0));
        assert_eq!(of(Kind::RetryWith), (449, 0));
        let retry_after = std::time::Duration::from_millis(7);
        assert_eq!(of(Kind::Throttled { retry_after, over: ExceededLimit::Share }), (429, 3200));
        assert_eq!(of(Kind::Throttled { retry_after, over: ExceededLimit::Bucket }), (429, 3212));
    }
}
