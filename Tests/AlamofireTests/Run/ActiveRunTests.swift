import Testing

@testable import Alamofire

@Suite("Tasks of a run") struct ActiveRunTests {
  @Test("A task that has ended does not replace the one that followed it") func order() async {
    var run = ActiveRun()
    let first = run.startTask()
    let second = run.startTask()
    let task = Task<Void, Never> {}
    let isAdded = (run.add(task, at: second), run.add(Task {}, at: first))
    #expect(isAdded == (true, false), "the first one is stored last")
    #expect(run.task == task)
  }

  @Test("A task of an ended run is not added to the next one") func endedRun() async {
    var run = ActiveRun()
    let place = run.startTask()
    run.end()
    let isAdded = run.add(Task {}, at: place)
    #expect(!isAdded && run.task == nil)
    let next = run.startTask()
    let isNextAdded = run.add(Task {}, at: next)
    #expect(isNextAdded)
  }
}
