//! Status codes: the status and substatus of each error kind in this protocol.

use pleiad_engine::{ScriptCause, ScriptError};
use pleiad_model::{Error, ErrorDetail, ExceededLimit, Fact, Kind, Object, Throttle, json};

use super::messages;
use crate::account::AuthError;

/// The status of a reply. The numbers are those of HTTP; every protocol of this API has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    Ok = 200,
    Created = 201,
    Accepted = 202,
    NoContent = 204,
    MultiStatus = 207,
    NotModified = 304,
    BadRequest = 400,
    Unauthorized = 401,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    Conflict = 409,
    Gone = 410,
    PreconditionFailed = 412,
    PayloadTooLarge = 413,
    Locked = 423,
    FailedDependency = 424,
    TooManyRequests = 429,
    /// Specific to Cosmos DB.
    RetryWith = 449,
    InternalServerError = 500,
    NotImplemented = 501,
    ServiceUnavailable = 503,
}

impl Status {
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The server's own failure, as opposed to what it rejects.
    pub fn is_server_failure(self) -> bool {
        matches!(self, Status::InternalServerError | Status::ServiceUnavailable)
    }

    /// The name in the body of an error.
    fn name(self) -> &'static str {
        match self {
            Status::Ok | Status::Created | Status::Accepted | Status::NoContent => "Success",
            Status::MultiStatus => "MultiStatus",
            Status::NotModified => "NotModified",
            Status::BadRequest => "BadRequest",
            Status::Unauthorized => "Unauthorized",
            Status::Forbidden => "Forbidden",
            Status::NotFound => "NotFound",
            Status::MethodNotAllowed => "MethodNotAllowed",
            Status::RequestTimeout => "RequestTimeout",
            Status::Conflict => "Conflict",
            Status::Gone => "Gone",
            Status::PreconditionFailed => "PreconditionFailed",
            Status::PayloadTooLarge => "RequestEntityTooLarge",
            Status::Locked => "Locked",
            Status::FailedDependency => "FailedDependency",
            Status::TooManyRequests => "TooManyRequests",
            Status::RetryWith => "RetryWith",
            Status::InternalServerError => "InternalServerError",
            Status::NotImplemented => "NotImplemented",
            Status::ServiceUnavailable => "ServiceUnavailable",
        }
    }
}

/// Status, substatus and message of an error; the `code` in the body follows from the status.
#[derive(Debug)]
pub struct ErrorStatus {
    pub status: Status,
    pub substatus: Option<u32>,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    /// Details for clients that can use them: the plan of a query that the client has to merge itself.
    pub additional_info: Option<String>,
    /// Why the request was throttled.
    pub throttle: Option<Box<Throttle>>,
    /// The engine has done nothing, because it is closed or replaced: the request may run on its replacement.
    pub is_declined: bool,
}

impl ErrorStatus {
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        let (substatus, retry_after_ms, additional_info, throttle, is_declined) = Default::default();
        let message = message.into();
        ErrorStatus { status, substatus, message, retry_after_ms, additional_info, throttle, is_declined }
    }

    /// `{"code": "NotFound", "message": "…"}`, with the activity id that the log contains.
    pub fn body(&self, activity: &str) -> Vec<u8> {
        let message = format!("{}\r\nActivityId: {activity}", self.message);
        let mut out = Vec::new();
        let mut body = Object::new().with("code", self.status.name()).with("message", message);
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
        let (message, throttle, is_declined) = match error.into_detail() {
            ErrorDetail::Text(text) => (text, None, false),
            ErrorDetail::Fact(fact) => {
                let message = messages::sentence(&fact);
                match fact {
                    Fact::Throttled(request) => (message, Some(Box::new(request.throttle)), false),
                    fact => (message, None, fact == Fact::Stopping),
                }
            }
        };
        ErrorStatus { status, substatus, message, retry_after_ms, additional_info: None, throttle, is_declined }
    }
}

/// The substatus of a script that could not be compiled.
const SCRIPT_COMPILE_ERROR: u32 = 0xFFFF;

/// The number that a script throws becomes the substatus if it is an error status of the protocol.
impl From<&ScriptError> for ErrorStatus {
    fn from(error: &ScriptError) -> Self {
        let (status, substatus) = match error.cause {
            ScriptCause::Syntax => (Status::BadRequest, Some(SCRIPT_COMPILE_ERROR)),
            ScriptCause::Thrown => (Status::BadRequest, error.number.filter(|n| (400..600).contains(n)).map(u32::from)),
            ScriptCause::OutOfMemory => (Status::BadRequest, None),
            ScriptCause::TimedOut => (Status::RequestTimeout, None),
            ScriptCause::TooLarge => (Status::PayloadTooLarge, None),
            ScriptCause::Busy => (Status::ServiceUnavailable, None),
        };
        ErrorStatus { substatus, ..ErrorStatus::new(status, error.to_string()) }
    }
}

fn status_codes(kind: Kind) -> (Status, Option<u32>) {
    match kind {
        Kind::Invalid => (Status::BadRequest, None),
        Kind::NotFinite => (Status::BadRequest, Some(4001)),
        Kind::KeyMismatch => (Status::BadRequest, Some(1001)),
        Kind::CrossPartition => (Status::BadRequest, Some(1004)),
        Kind::ContainerChanged => (Status::BadRequest, Some(1024)),
        Kind::Forbidden | Kind::QuotaExceeded => (Status::Forbidden, None),
        Kind::KeyFull => (Status::Forbidden, Some(1014)),
        Kind::NotFound => (Status::NotFound, Some(0)),
        Kind::SessionNotAvailable => (Status::NotFound, Some(1002)),
        Kind::OwnerNotFound => (Status::NotFound, Some(1003)),
        Kind::Conflict => (Status::Conflict, None),
        Kind::Moved { .. } => (Status::Gone, Some(1002)),
        Kind::PreconditionFailed => (Status::PreconditionFailed, None),
        Kind::FailedDependency => (Status::FailedDependency, None),
        Kind::TooLarge => (Status::PayloadTooLarge, None),
        Kind::TimedOut => (Status::RequestTimeout, None),
        Kind::Locked => (Status::Locked, None),
        Kind::Throttled { over: ExceededLimit::Share, .. } => (Status::TooManyRequests, Some(3200)),
        Kind::Throttled { over: ExceededLimit::Bucket, .. } => (Status::TooManyRequests, Some(3212)),
        Kind::RetryWith => (Status::RetryWith, None),
        Kind::Unsupported => (Status::NotImplemented, None),
        Kind::Unavailable => (Status::ServiceUnavailable, None),
        Kind::Internal => (Status::InternalServerError, None),
    }
}

impl From<AuthError> for ErrorStatus {
    fn from(error: AuthError) -> Self {
        const UNAUTHORIZED: Status = Status::Unauthorized;
        const FORBIDDEN: Status = Status::Forbidden;
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
            (failure.status.code(), failure.substatus.unwrap_or(0))
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
