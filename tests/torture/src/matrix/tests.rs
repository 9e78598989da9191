//! The table of cells against the points that there are.

use std::collections::BTreeSet;

use super::cells;

#[test]
fn every_cell_has_a_label_of_its_own() {
    let cells = cells();
    let labels: BTreeSet<_> = cells.iter().map(|cell| cell.label).collect();
    assert_eq!(labels.len(), cells.len());
}

#[cfg(feature = "failpoints")]
#[test]
fn every_point_of_the_runtime_has_a_cell_and_no_other() {
    let points: BTreeSet<_> = queue_runtime::failpoint::NAMES.into_iter().collect();
    let tried: BTreeSet<_> = cells()
        .iter()
        .map(|cell| cell.point)
        .filter(|point| !point.starts_with('('))
        .collect();
    assert_eq!(points, tried);
}
