import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct HandlerTests {
  @Test("Handlers are called on the main queue in order") func order() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    Manager.isolated().request(.GET, server.url("/get"))
      .responseString { notes.add("string \(isOnMain) \($0.result.isSuccess)") }
      .responseJSON { notes.add("json \(isOnMain) \($0.result.isSuccess)") }
      .responseData { notes.add("data \(isOnMain) \($0.result.isSuccess)") }
      .responsePropertyList { notes.add("plist \(isOnMain) \($0.result.isSuccess)") }
      .response { _, response, _, _ in notes.add("four \(isOnMain) \(response?.statusCode ?? 0)") }
    #expect(
      await notes.wait(for: 5) == [
        "string true true", "json true true", "data true true", "plist true false", "four true 200",
      ])
  }

  @Test("Handlers are called on their queues") func queues() async throws {
    let server = try HTTPTestServer()
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "own")
    queue.setSpecific(key: key, value: "own")
    let notes = Notes()
    func note() { notes.add(DispatchQueue.getSpecific(key: key) ?? "other") }
    Manager.isolated().request(.GET, server.url("/get"))
      .response(queue: queue) { _, _, _, _ in note() }.response(queue: queue) { (all) in note() }
      .responseData(queue: queue) { _ in note() }.responseString(queue: queue) { _ in note() }
      .responseJSON(queue: queue) { _ in note() }.responsePropertyList(queue: queue) { _ in note() }
    #expect(await notes.wait(for: 6) == Array(repeating: "own", count: 6))
  }

  @Test("A closure with one parameter receives all four values") func oneParameter() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    Manager.isolated().request(.GET, server.url("/status/418"))
      .response { response in
        notes.add("\(response.response?.statusCode ?? 0) \(response.data?.count ?? -1)")
        notes.add("\(response.request?.httpMethod ?? "") \(response.error == nil)")
      }
    #expect(await notes.wait(for: 2) == ["418 0", "GET true"])
  }

  @Test("JSON is read with the options of the caller, by default also without a collection")
  func jsonOptions()
    async throws
  {
    let server = try HTTPTestServer()
    server.enqueue(.json("7"), .json("7"), .json("7"))
    let manager = Manager.isolated()
    let usual = await manager.request(.GET, server.url("/")).outcome {
      $0.responseJSON(completionHandler: $1)
    }
    #expect(usual.result.value as? Int == 7)
    for (options, value) in [(.allowFragments, 7), ([], nil)] as [(JSONSerialization.ReadingOptions, Int?)] {
      let response = await manager.request(.GET, server.url("/"))
        .outcome { $0.responseJSON(options: options, completionHandler: $1) }
      #expect(response.result.value as? Int == value && response.result.isSuccess == (value != nil))
    }
  }

  @Test("Validators apply to later handlers") func validators() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.isolated().request(.GET, server.url("/status/404"))
      .responseData(queue: .global()) { notes.add("before \($0.result)") }
    _ = await notes.wait(for: 1)
    request.validate(statusCode: [200]).responseData(queue: .global()) { notes.add("behind \($0.result)") }
    #expect(await notes.wait(for: 2) == ["before SUCCESS", "behind FAILURE"])
  }

  @Test("A serializer of the user receives all values") func ownSerializer() async throws {
    let server = try HTTPTestServer()
    let serializer = ResponseSerializer<String, NSError> { request, response, data, error in
      .Success(
        "\(request?.httpMethod ?? "") \(response?.statusCode ?? 0) \(data?.count ?? 0) \(error == nil) "
          + "\(isOnMain)")
    }
    let response = await Manager.isolated().request(.GET, server.url("/bytes/10")).outcome {
      $0.response(responseSerializer: serializer, completionHandler: $1)
    }
    #expect(response.result.value == "GET 200 10 true false")
    #expect(response.description == "SUCCESS: GET 200 10 true false")
    #expect(response.debugDescription.contains("[Data]: 10 bytes\n[Result]: SUCCESS: GET"))
  }
}
