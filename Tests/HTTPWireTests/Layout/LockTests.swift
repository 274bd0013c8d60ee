import Foundation
import Testing

@Suite("Locks of the modules") struct LockTests {
  @Test("Each target that locks has a Mutex that the thread sanitizer sees", arguments: ["Sources", "Tests"])
  func trackedMutex(folder: String) throws {
    var locking: Set<String> = []
    var tracked: Set<String> = []
    var root = URL(fileURLWithPath: #filePath)
    for _ in 0..<4 { root.deleteLastPathComponent() }
    root.appendPathComponent(folder)
    for case let path as String in try #require(FileManager.default.enumerator(atPath: root.path))
    where path.hasSuffix(".swift") {
      let target = try #require(path.split(separator: "/").first.map(String.init))
      let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
      if text.contains(/(typealias Mutex = [A-Za-z.]*Mutex\n|struct Mutex<)/) { tracked.insert(target) }
      if text.contains(/\bMutex[<(]/) { locking.insert(target) }
    }
    #expect(locking.count > 4)
    #expect(locking.subtracting(tracked) == [])
  }
}
