//! Actions: what a caller can be allowed to do, whatever the protocol.

/// The data actions are those of the service's role-based access control; the others are allowed by account keys only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the account, databases, containers, partition key ranges and client encryption keys.
    ReadMetadata,
    CreateItem,
    ReadItem,
    ReplaceItem,
    UpsertItem,
    DeleteItem,
    /// Reading properties that a masking policy hides. Masking is not implemented yet, so nothing requires this action.
    UnmaskItem,
    ExecuteQuery,
    ReadChangeFeed,
    ExecuteStoredProcedure,
    ManageConflicts,
    /// Read offers, users, permissions and scripts.
    ReadSettings,
    /// Create, replace and delete databases, containers, offers, users, permissions, scripts and encryption keys.
    WriteSettings,
    /// Read reports about partitions, jobs and usage.
    Monitor,
    /// Split and merge partitions, steer jobs, take and restore snapshots, inject faults.
    Administer,
}

impl Action {
    pub const fn name(self) -> &'static str {
        match self {
            Action::ReadMetadata => "ReadMetadata",
            Action::CreateItem => "CreateItem",
            Action::ReadItem => "ReadItem",
            Action::ReplaceItem => "ReplaceItem",
            Action::UpsertItem => "UpsertItem",
            Action::DeleteItem => "DeleteItem",
            Action::UnmaskItem => "UnmaskItem",
            Action::ExecuteQuery => "ExecuteQuery",
            Action::ReadChangeFeed => "ReadChangeFeed",
            Action::ExecuteStoredProcedure => "ExecuteStoredProcedure",
            Action::ManageConflicts => "ManageConflicts",
            Action::ReadSettings => "ReadSettings",
            Action::WriteSettings => "WriteSettings",
            Action::Monitor => "Monitor",
            Action::Administer => "Administer",
        }
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet(u16);

impl ActionSet {
    /// Every action that a batch can need.
    pub const ITEM_WRITES_AND_READS: ActionSet = ActionSet::of(&[
        Action::CreateItem,
        Action::ReadItem,
        Action::ReplaceItem,
        Action::UpsertItem,
        Action::DeleteItem,
    ]);
    pub const ALL: ActionSet = ActionSet((1 << (Action::Administer as u16 + 1)) - 1);

    pub const fn of(actions: &[Action]) -> ActionSet {
        let (mut bits, mut at) = (0, 0);
        while at < actions.len() {
            bits |= 1 << actions[at] as u16;
            at += 1;
        }
        ActionSet(bits)
    }

    pub const fn has(self, action: Action) -> bool {
        self.0 & 1 << action as u16 != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn with(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & !other.0)
    }
}

impl From<Action> for ActionSet {
    fn from(action: Action) -> ActionSet {
        ActionSet::of(&[action])
    }
}
