use super::*;

#[test]
fn every_kind_has_its_own_name() {
    assert_eq!(ContainerKind::ALL.map(ContainerKind::as_str), ["nosql", "table", "graph", "mongo", "cassandra"]);
    for kind in ContainerKind::ALL {
        assert_eq!(ContainerKind::from_name(kind.as_str()), Some(kind));
    }
    for name in ["", "NoSQL", "gremlin"] {
        assert_eq!(ContainerKind::from_name(name), None);
    }
}

#[test]
fn all_kinds_but_nosql_are_reserved() {
    let reserved: Vec<ContainerKind> = ContainerKind::ALL.into_iter().filter(|kind| kind.is_reserved()).collect();
    assert_eq!(reserved, ContainerKind::ALL[1..]);
}
