import Foundation
import Scorecard

/// Compares the times of the clients: the scorecard.
struct Comparison {
  let harness: Harness
  let plan: Plan

  /// Runs the plan, prints each cell when it is done, and returns all results.
  func perform() throws -> [BenchResult] {
    try plan.groups.flatMap { group in
      if let title = group.title { Console.say(title) }
      Console.say(Table.header)
      return try group.cells.flatMap { cell in
        let results = try perform(cell)
        results.forEach { Console.say(Table.line($0)) }
        Console.say()
        return results
      }
    }
  }

  private func perform(_ cell: Plan.Cell) throws -> [BenchResult] {
    var runs: [Plan.Contender: [Harness.Run]] = [:]
    for _ in 0..<plan.rounds {
      for contender in cell.contenders {
        let requests = Plan.requests(contender, concurrency: cell.concurrency)
        let run = try harness.run(
          contender, over: cell.wire, concurrency: cell.concurrency, requests: requests)
        runs[contender, default: []].append(run)
      }
    }
    let floors = cell.contenders.first.flatMap { runs[$0] } ?? []
    return cell.contenders.map { BenchResult($0, in: cell, runs: runs[$0] ?? [], floors: floors) }
  }
}
