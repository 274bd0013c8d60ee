import HTTPWire
import Randomness
import Testing

@Suite("Long lists of fields") struct FieldIndexTests {
  @Test("Ten thousand fields are set, read and replaced in linear time", .timeLimit(.minutes(1)))
  func manyFields() {
    let names = (0..<10_000).map { "X-Field-\($0)" }
    var headers = HTTPHeaders()
    let took = processorTime {
      for name in names { headers.add(name: name, value: "1") }
      for name in names { headers.update(name: name.uppercased(), value: "2") }
      for name in names where headers[name] != "2" { Issue.record("\(name) is not found") }
      headers = HTTPHeaders(Array(headers))
    }
    // Searching the list for each name takes more than a minute in a debug build.
    #expect(took < .seconds(5))
    #expect(headers.map(\.name) == names.map { $0.uppercased() })
  }

  @Test("Long list behaves as a short one")
  func sameAsShort() {
    var random = SeededGenerator(seed: 16)
    var headers = HTTPHeaders()
    var model: [(name: String, value: String)] = []
    for step in 0..<5000 {
      let number = Int(random.next() % 80)
      let name = random.next() % 2 == 0 ? "Name-\(number)" : "NAME-\(number)"
      let position = model.firstIndex { $0.name.lowercased() == name.lowercased() }
      switch random.next() % 8 {
      case 0:
        headers.remove(name: name)
        if let position { model.remove(at: position) }
      case 1 where step % 50 == 0:
        headers.sort()
        model.sort { $0.name.lowercased() < $1.name.lowercased() }
      default:
        headers.update(name: name, value: "\(step)")
        if let position {
          model[position] = (name, "\(step)")
        } else {
          model.append((name, "\(step)"))
        }
      }
      #expect(headers[name] == model.first { $0.name.lowercased() == name.lowercased() }?.value)
    }
    #expect(headers.map(\.description) == model.map { "\($0.name): \($0.value)" })
    #expect(
      headers == HTTPHeaders(Array(headers)) && headers.hashValue == HTTPHeaders(Array(headers)).hashValue)
  }
}
