//! Valid and invalid roles files, and what they allow. The test of all routes in `crates/pleiad/tests/access.rs` shows
//! which request needs which action.

use super::*;
use proptest::prelude::*;

const READER: &str = "00000000-0000-0000-0000-000000000001";
const CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";

fn principal(id: &str, groups: &[&str]) -> Principal {
    Principal { id: id.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect() }
}

fn custom(id: &str, actions: &str, scopes: &str) -> String {
    format!(
        r#"{{"id":"{id}","roleName":"{id}","type":"CustomRole","assignableScopes":[{scopes}],"permissions":[{{"dataActions":[{actions}]}}]}}"#
    )
}

fn assignment(role: &str, principal: &str, scope: &str) -> String {
    format!(r#"{{"roleDefinitionId":"{role}","principalId":"{principal}","scope":"{scope}"}}"#)
}

fn file(definitions: &[String], assignments: &[String]) -> String {
    let (definitions, assignments) = (definitions.join(","), assignments.join(","));
    format!(r#"{{"sqlRoleDefinitions":[{definitions}],"sqlRoleAssignments":[{assignments}]}}"#)
}

fn roles(definitions: &[String], assignments: &[String]) -> Roles {
    parse(file(definitions, assignments).as_bytes()).unwrap()
}

#[track_caller]
fn check_rejected(text: &str, why: &str) {
    let error = parse(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains(why), "{error}");
}

fn allowed(roles: &Roles, principal: &Principal, scope: &RoleScope) -> Vec<Action> {
    DATA_ACTIONS.iter().copied().filter(|action| roles.allow(principal, *action, scope)).collect()
}

#[test]
fn the_two_built_in_roles_exist() {
    use Action::*;
    let roles = roles(&[], &[assignment(READER, "r", "/"), assignment(CONTRIBUTOR, "c", "/")]);
    let reads = [ReadMetadata, ReadItem, ExecuteQuery, ReadChangeFeed];
    assert_eq!(allowed(&roles, &principal("r", &[]), &RoleScope::container("d", "c")), reads);
    assert_eq!(allowed(&roles, &principal("c", &[]), &RoleScope::container("d", "c")), DATA_ACTIONS);
    assert_eq!(allowed(&roles, &principal("nobody", &[]), &RoleScope::account()), []);
    assert_eq!(allowed(&Roles::default(), &principal("c", &[]), &RoleScope::account()), []);
}

#[test]
fn a_role_applies_to_its_scope_and_below() {
    let roles = roles(&[], &[assignment(READER, "a", "/dbs/d"), assignment(READER, "b", "/dbs/d/colls/c")]);
    let may = |id: &str, scope: RoleScope| roles.allow(&principal(id, &[]), Action::ReadItem, &scope);
    assert!(may("a", RoleScope::database("d")) && may("a", RoleScope::container("d", "c")));
    assert!(
        !may("a", RoleScope::account())
            && !may("a", RoleScope::database("D"))
            && !may("a", RoleScope::container("e", "c"))
    );
    assert!(may("b", RoleScope::container("d", "c")));
    assert!(!may("b", RoleScope::database("d")) && !may("b", RoleScope::container("d", "c2")));
    assert!(roles.allow_in_any_scope(&principal("b", &[]), Action::ReadMetadata));
    assert!(!roles.allow_in_any_scope(&principal("b", &[]), Action::CreateItem));
}

#[test]
fn groups_have_assignments_and_ids_ignore_case() {
    let roles = roles(&[], &[assignment(CONTRIBUTOR, "AA-01", "/"), assignment(READER, "me", "/")]);
    assert!(roles.allow(&principal("me", &["aa-01"]), Action::DeleteItem, &RoleScope::account()));
    assert!(!roles.allow(&principal("me", &["aa-02"]), Action::DeleteItem, &RoleScope::account()));
}

#[test]
fn wildcards_stand_for_actions_with_their_prefix() {
    use Action::*;
    let of = |name: &str| {
        let set = actions_named(&format!("Microsoft.DocumentDB/databaseAccounts/{name}"));
        set.map(|set| DATA_ACTIONS.iter().copied().filter(|action| set.has(*action)).collect::<Vec<_>>())
    };
    let items = [CreateItem, ReadItem, ReplaceItem, UpsertItem, DeleteItem, UnmaskItem];
    assert_eq!(of("sqlDatabases/containers/items/*").unwrap(), items);
    assert_eq!(of("sqldatabases/CONTAINERS/*").unwrap(), DATA_ACTIONS[1..]);
    assert_eq!(of("readMetadata").unwrap(), [ReadMetadata]);
    for wrong in ["sqlDatabases/write", "sqlDatabases/containers/items", ""] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
    for wide in ["*", "sqlDatabases/*", "sqlDatabases/containers/items/re*", "readMetadata/*", "sqlContainers/*"] {
        assert!(of(wide).unwrap_err().to_string().contains("/sqlDatabases/containers/items/*'"), "{wide}");
    }
    for outer in ["*", "Microsoft.DocumentDB/*", "Microsoft.DocumentDB/databaseAccounts*"] {
        assert!(actions_named(outer).unwrap_err().to_string().contains("one by one"), "{outer}");
    }
}

#[test]
fn not_data_actions_are_subtracted() {
    let prefix = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers";
    let role = format!(
        r#"{{"id":"x","roleName":"x","assignableScopes":["/"],"permissions":[{{"dataActions":["{prefix}/items/*"],"notDataActions":["{prefix}/items/delete"]}}]}}"#
    );
    let roles = roles(&[role], &[assignment("x", "me", "/")]);
    let may = |action| roles.allow(&principal("me", &[]), action, &RoleScope::account());
    assert!(may(Action::CreateItem) && !may(Action::DeleteItem));
}

#[test]
fn the_services_own_spellings_are_accepted() {
    let account = "/subscriptions/s/resourceGroups/g/providers/Microsoft.DocumentDB/databaseAccounts/acc";
    let definition = format!(
        r#"{{"id":"{account}/sqlRoleDefinitions/R1","name":"R1","type":"Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions","properties":{{"roleName":"Mine","type":"CustomRole","assignableScopes":["{account}/dbs/d"],"permissions":[{{"dataActions":["Microsoft.DocumentDB/databaseAccounts/readMetadata"]}}]}}}}"#
    );
    let by_hand = r#"{"Id":"r2","RoleName":"x","Type":"CustomRole","AssignableScopes":["/"],"Permissions":[{"DataActions":["Microsoft.DocumentDB/databaseAccounts/readMetadata"]}]}"#;
    let assigned = assignment(&format!("{account}/sqlRoleDefinitions/r1"), "me", &format!("{account}/dbs/d/colls/c"));
    let roles = roles(&[definition, by_hand.to_owned()], &[assigned, assignment("R2", "you", "/")]);
    assert!(roles.allow(&principal("me", &[]), Action::ReadMetadata, &RoleScope::container("d", "c")));
    assert!(roles.allow(&principal("you", &[]), Action::ReadMetadata, &RoleScope::account()));
}

#[test]
fn a_database_may_be_named_like_the_account_segment() {
    let scope = |text: &str| RoleScope::parse(text).unwrap();
    assert_eq!(scope("/dbs/databaseAccounts"), RoleScope::database("databaseAccounts"));
    assert_eq!(scope("/dbs/databaseAccounts/"), RoleScope::database("databaseAccounts"));
    assert_eq!(scope("/dbs/databaseAccounts/colls/c"), RoleScope::container("databaseAccounts", "c"));
    assert_eq!(scope("/Subscriptions/s/databaseaccounts/any/"), RoleScope::account());
    assert_eq!(
        scope("/subscriptions/s/databaseAccounts/any/dbs/databaseAccounts"),
        RoleScope::database("databaseAccounts")
    );
    for wrong in ["/subscriptions/s/resourceGroups/g", "/databaseAccounts/any", "/databaseAccounts/any/dbs/d"] {
        assert!(RoleScope::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_invalid_file_is_rejected_with_the_position() {
    let action = r#""Microsoft.DocumentDB/databaseAccounts/readMetadata""#;
    let good = custom("a", action, r#""/dbs/d""#);
    check_rejected("", "not valid JSON");
    check_rejected("[]", "is a JSON object");
    check_rejected(r#"{"roles":[]}"#, r#"no "roles""#);
    check_rejected(r#"{"sqlRoleAssignments":{}}"#, "not an array");
    check_rejected(&file(&["1".to_owned()], &[]), "sqlRoleDefinitions[0]: An object was expected");
    check_rejected(&file(&[good.clone(), good.clone()], &[]), "another role with the id a");
    check_rejected(&file(&[custom(READER, action, r#""/""#)], &[]), "another role");
    check_rejected(
        &file(&[custom("a", r#""Microsoft.DocumentDB/write""#, r#""/""#)], &[]),
        "[Microsoft.DocumentDB/write] does not",
    );
    check_rejected(&file(&[custom("a", action, "")], &[]), "'assignableScopes' is empty");
    check_rejected(&file(&[custom("a", action, r#""dbs/d""#)], &[]), "neither '/'");
    check_rejected(&file(&[good.replace("CustomRole", "BuiltInRole")], &[]), "CustomRole");
    check_rejected(&file(&[], &[assignment("b", "me", "/")]), "sqlRoleAssignments[0]: There is no role with the id b");
    check_rejected(&file(std::slice::from_ref(&good), &[assignment("a", "me", "/")]), "not assignable at '/'");
    check_rejected(&file(&[good], &[assignment("a", "", "/dbs/d")]), "'principalId' is missing");
    check_rejected(&file(&[], &[assignment(READER, "me", "/dbs/d/docs/1")]), "neither '/'");
}

#[test]
fn an_account_has_a_hundred_roles_and_two_thousand_assignments() {
    let action = r#""Microsoft.DocumentDB/databaseAccounts/readMetadata""#;
    let definitions = |count: usize| (0..count).map(|n| custom(&n.to_string(), action, r#""/""#)).collect::<Vec<_>>();
    let assignments = |count: usize| (0..count).map(|n| assignment(READER, &n.to_string(), "/")).collect::<Vec<_>>();
    assert!(parse(file(&definitions(100), &assignments(2000)).as_bytes()).is_ok());
    check_rejected(&file(&definitions(101), &[]), "at most 100");
    check_rejected(&file(&[], &assignments(2001)), "at most 2000");
}

#[test]
fn the_newest_valid_file_is_in_effect() {
    let path = std::env::temp_dir().join(format!("pleiad-roles-{}.json", std::process::id()));
    let me = principal("me", &[]);
    std::fs::write(&path, file(&[], &[assignment(READER, "me", "/")])).unwrap();
    let role_store = store::RoleStore::open(path.clone()).unwrap();
    let may = |action| role_store.roles().allow(&me, action, &RoleScope::account());
    assert!(may(Action::ReadItem) && !may(Action::CreateItem));
    std::fs::write(&path, "half a fi").unwrap();
    role_store.refresh();
    assert!(may(Action::ReadItem));
    std::fs::write(&path, file(&[], &[assignment(CONTRIBUTOR, "me", "/dbs/d"), assignment(CONTRIBUTOR, "me", "/")]))
        .unwrap();
    role_store.refresh();
    assert!(may(Action::CreateItem));
    std::fs::remove_file(&path).unwrap();
    role_store.refresh();
    assert!(may(Action::CreateItem), "deleting the file revokes nothing");
    assert!(store::RoleStore::open(path).is_err(), "a server does not start without the file");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Deny by default, checked in reverse: every allowed action is covered by an assignment.
    #[test]
    fn nothing_is_allowed_without_an_assignment(
        assigned in prop::collection::vec((0..3usize, 0..4usize, 0..5usize), 0..6), member in 0..3usize, place in 0..5usize,
    ) {
        let scopes = ["/", "/dbs/d", "/dbs/d/colls/c", "/dbs/d/colls/e", "/dbs/x"];
        let ids = [READER, CONTRIBUTOR, "w", "q"];
        let prefix = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers";
        let own = [
            custom("w", &format!(r#""{prefix}/items/create""#), r#""/""#),
            custom("q", &format!(r#""{prefix}/executeQuery""#), r#""/""#),
        ];
        let assignments: Vec<String> =
            assigned.iter().map(|(assignee, role, scope)| assignment(ids[*role], &assignee.to_string(), scopes[*scope])).collect();
        let roles = roles(&own, &assignments);
        let asked = RoleScope::parse(scopes[place]).unwrap();
        for action in DATA_ACTIONS {
            let expected = assigned.iter().any(|(assignee, role, scope)| {
                let reads = matches!(action, Action::ReadMetadata | Action::ReadItem | Action::ExecuteQuery | Action::ReadChangeFeed);
                let has = [reads, true, action == Action::CreateItem, action == Action::ExecuteQuery][*role];
                *assignee == member && has && RoleScope::parse(scopes[*scope]).unwrap().covers(&asked)
            });
            prop_assert_eq!(roles.allow(&principal(&member.to_string(), &[]), action, &asked), expected);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}", scope in "(/|dbs|colls|databaseAccounts|x|é){0,8}") {
        let _ = parse(text.as_bytes());
        let _ = RoleScope::parse(&scope);
        let _ = parse(file(&[], &[assignment(READER, "me", &scope)]).as_bytes());
    }
}
