//! Relations between two figures on the same surface: intersects, within, distance.
//!
//! Invariant: `distance` is 0 exactly if `intersects` is true; boundaries belong to the figures they bound. Edges are
//! compared group by group, and points are tested against a polygon only where boundaries cross or touch: between two
//! such points nothing changes. `check_cancelled` is called with the number of steps before they are made.

use crate::CheckCancelled;
use crate::figure::{EdgeGroup, Figure, Segment, SurfacePoint, segments};

pub fn intersects<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<bool, E> {
    Ok(covers_any(b, first_points(a), check_cancelled)?
        || covers_any(a, first_points(b), check_cancelled)?
        || boundaries_intersect(a, b, check_cancelled)?)
}

fn covers_any<P: SurfacePoint, E>(
    figure: &Figure<P>,
    mut points: impl Iterator<Item = P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<bool, E> {
    let edges = figure.edge_count();
    points.try_fold(false, |found, point| {
        check_cancelled(edges)?;
        Ok(found || figure.covers(point))
    })
}

/// One point of each part; if no boundaries intersect, the whole part is on the same side as this point.
fn first_points<P: SurfacePoint>(figure: &Figure<P>) -> impl Iterator<Item = P> {
    figure.chains().filter_map(|chain| chain.first().copied())
}

fn boundaries_intersect<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<bool, E> {
    for one in a.edge_groups() {
        check_cancelled(b.edge_groups().len())?;
        for other in b.edge_groups().iter().filter(|other| one.may_intersect(other)) {
            check_cancelled(STEPS_PER_PAIR * one.edges.len() * other.edges.len())?;
            if groups_intersect(one, other) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Comparing two edges takes longer than testing a point against one.
const STEPS_PER_PAIR: usize = 16;

fn groups_intersect<P: SurfacePoint>(one: &EdgeGroup<P>, other: &EdgeGroup<P>) -> bool {
    one.edges.iter().any(|&one| other.edges.iter().any(|&other| segments_intersect(one, other)))
}

fn segments_intersect<P: SurfacePoint>(one: Segment<P>, other: Segment<P>) -> bool {
    P::crossing(one, other).is_some()
        || one.from.is_on(other)
        || one.to.is_on(other)
        || other.from.is_on(one)
        || other.to.is_on(one)
}

/// No point of `a` is outside `b`: its edges are not, and `b` has no boundary (of a hole, say) inside `a`.
pub fn within<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<bool, E> {
    if b.polygons.is_empty() && !a.polygons.is_empty() {
        return Ok(false);
    }
    let encloses = |point: P| a.polygons.iter().any(|polygon| polygon.encloses(point));
    if !all_witnesses(a, b, check_cancelled, |point| b.covers(point))? {
        return Ok(false);
    }
    Ok(a.polygons.is_empty() || all_witnesses(b, a, check_cancelled, |point| !encloses(point))?)
}

/// Whether `holds` is true for all points that determine on which side of the boundaries of `b` the parts of `a`
/// are.
fn all_witnesses<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
    holds: impl Fn(P) -> bool,
) -> Result<bool, E> {
    let edges = b.edge_count();
    for chain in a.chains() {
        check_cancelled(edges)?;
        if chain.first().is_some_and(|first| !holds(*first)) {
            return Ok(false);
        }
        for edge in segments(chain) {
            check_cancelled(b.edge_groups().len())?;
            for point in piece_midpoints(edge, b, check_cancelled)? {
                check_cancelled(edges)?;
                if !holds(point) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// One point of each piece into which the figure's boundaries cut the edge. Together with the chain's first point
/// they determine on which side of the boundaries all of the chain is.
///
/// None for an edge that no boundary touches: it is on the same side as the edge before it.
fn piece_midpoints<P: SurfacePoint, E>(
    edge: Segment<P>,
    figure: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<Vec<P>, E> {
    let group = EdgeGroup::new(&[edge]);
    let mut touched = false;
    let mut cut_points = vec![edge.from, edge.to];
    for near in figure.edge_groups().iter().filter(|other| other.may_intersect(&group)) {
        check_cancelled(STEPS_PER_PAIR * near.edges.len())?;
        for &other in &near.edges {
            touched |= segments_intersect(edge, other);
            cut_points.extend(P::crossing(edge, other));
            cut_points.extend([other.from, other.to].into_iter().filter(|end| end.is_on(edge)));
        }
    }
    Ok(if touched { midpoints_between(edge, cut_points) } else { Vec::new() })
}

fn midpoints_between<P: SurfacePoint>(edge: Segment<P>, mut cut_points: Vec<P>) -> Vec<P> {
    cut_points.sort_by(|a, b| a.progress(edge).total_cmp(&b.progress(edge)));
    let pairs = cut_points.iter().zip(cut_points.iter().skip(1)).filter(|(from, to)| !from.same(**to));
    pairs.map(|(from, to)| from.midpoint(*to)).collect()
}

pub fn distance<P: SurfacePoint, E>(
    a: &Figure<P>,
    b: &Figure<P>,
    check_cancelled: CheckCancelled<'_, E>,
) -> Result<f64, E> {
    if intersects(a, b, check_cancelled)? {
        return Ok(0.0);
    }
    if let (Some(from), Some(to)) = (a.only_point(), b.only_point()) {
        return Ok(from.distance_to(Segment { from: to, to }, f64::INFINITY));
    }
    check_cancelled(a.edge_groups().len() * b.edge_groups().len())?;
    let pairs = a
        .edge_groups()
        .iter()
        .flat_map(|one| b.edge_groups().iter().map(move |other| (one.distance_lower_bound(other), one, other)));
    let mut pairs = pairs.collect::<Vec<_>>();
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut best = f64::INFINITY;
    for (bound, one, other) in pairs {
        if bound >= best {
            break; // all others are at least as far
        }
        check_cancelled(STEPS_PER_PAIR * one.edges.len() * other.edges.len())?;
        best = min_distance(one, other, best);
    }
    Ok(best)
}

/// The distance between two groups, or `best` if that is less. Edges that do not cross are nearest at an end of one
/// of them: the pair with the smallest cheap bound is measured first, then the pairs whose bound is below the best
/// distance.
fn min_distance<P: SurfacePoint>(one: &EdgeGroup<P>, other: &EdgeGroup<P>, best: f64) -> f64 {
    let bounded = || {
        endpoint_edge_pairs(one, other)
            .chain(endpoint_edge_pairs(other, one))
            .map(|(point, edge)| (point.distance_lower_bound(edge), point, edge))
    };
    let Some((bound, point, edge)) = bounded().min_by(|x, y| x.0.total_cmp(&y.0)) else { return best };
    if bound >= best {
        return best;
    }
    let first = best.min(point.distance_to(edge, best));
    bounded().fold(
        first,
        |best, (bound, point, edge)| {
            if bound < best { best.min(point.distance_to(edge, best)) } else { best }
        },
    )
}

/// Every end of an edge of one group with every edge of the other.
fn endpoint_edge_pairs<P: SurfacePoint>(
    one: &EdgeGroup<P>,
    other: &EdgeGroup<P>,
) -> impl Iterator<Item = (P, Segment<P>)> {
    // Each edge begins where the one before it ends.
    let last = one.edges.last().map(|edge| edge.to);
    let points = one.edges.iter().map(|edge| edge.from).chain(last);
    points.flat_map(|point| other.edges.iter().map(move |&edge| (point, edge)))
}
