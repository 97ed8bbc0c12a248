use super::*;
use crate::parse::print::print_expr;

/// The first argument of `FullTextScore`, and the property that it selects.
#[track_caller]
fn check_selected(property: &str, want: &str) {
    let text = format!("SELECT VALUE {property} FROM c");
    let select = crate::parse::parse(&text).unwrap();
    let expr = &select.spec.items()[0].expr;
    assert_eq!(print_expr(&selected_property(expr)), want, "{property}");
}

#[test]
fn a_path_into_an_object_literal_selects_a_property() {
    check_selected("c.text", "c.text");
    check_selected(r#"{"t": c.text, "k": c.pk}["t"]"#, "c.text");
    check_selected(r#"{"o": {"t": c.a}}.o.t.b"#, "c.a.b");
    check_selected(r#"{"o": c}.o.text"#, "c.text");
    check_selected(r#"{"t": c.text}.u"#, r#"{"t": c.text}.u"#);
}

fn scored(rid: &str, scores: &[f64]) -> ScoredItem {
    ScoredItem { rid: rid.to_owned(), scores: scores.to_vec(), payload: Value::Null }
}

fn order(components: &[(bool, f64)], rows: &[ScoredItem]) -> String {
    let components: Vec<FusionRule> =
        components.iter().map(|(ascending, weight)| FusionRule { ascending: *ascending, weight: *weight }).collect();
    fuse(&components, rows.to_vec()).into_iter().map(|row| row.rid).collect()
}

#[test]
fn ranks_are_fused_and_ties_share_a_rank() {
    // a: ranks 1 and 3, b: 2 and 1, c: 2 and 2; b and c share rank 2 of the first component.
    let rows = [scored("a", &[9.0, 0.0]), scored("b", &[5.0, 7.0]), scored("c", &[5.0, 6.0])];
    assert_eq!(order(&[(false, 1.0), (false, 1.0)], &rows), "bac");
    let fused = |ranks: [f64; 2]| ranks.map(|rank| 1.0 / (60.0 + rank)).iter().sum::<f64>();
    assert!(fused([2.0, 1.0]) > fused([1.0, 3.0]) && fused([1.0, 3.0]) > fused([2.0, 2.0]));
}

#[test]
fn weights_and_directions() {
    let rows = [scored("a", &[9.0, 0.0]), scored("b", &[5.0, 6.0]), scored("c", &[4.0, 7.0])];
    assert_eq!(order(&[(false, 10.0), (false, 1.0)], &rows), "abc");
    assert_eq!(order(&[(false, 1.0), (false, 10.0)], &rows), "cba");
    assert_eq!(order(&[(true, 1.0), (true, 0.1)], &rows), "cba");
}

#[test]
fn duplicates_count_once_and_a_single_component_keeps_its_order() {
    let rows = [scored("b", &[1.0, 1.0]), scored("a", &[2.0, 2.0]), scored("b", &[1.0, 1.0])];
    assert_eq!(order(&[(false, 1.0), (false, 1.0)], &rows), "ab");
    assert_eq!(order(&[(false, 1.0)], &rows[..2]), "ba");
    assert_eq!(order(&[(false, 1.0), (false, 1.0)], &[]), "");
}
