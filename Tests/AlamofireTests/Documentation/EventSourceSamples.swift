import Alamofire
import Foundation

// Samples of the comments on event sources and of EventSources.md; see `SampleTests`.

private struct Price: Decodable, Sendable {
  let currency: String
  let value: Double
}

private func value() -> ServerSentEvent {
  let event = ServerSentEvent(type: "price", data: #"{"EUR": 0.92}"#, id: "42")
  return event
}

private func loop() async throws {
  for try await event in AF.eventSourceRequest("https://example.com/prices").events() {
    print(event.type, event.data)
  }
}

private func handler() {
  AF.eventSourceRequest("https://example.com/prices").responseEvents { stream in
    if case .stream(.success(let event)) = stream.event { print(event.data) }
  }
}

private func configured() -> EventSourceRequest.Configuration {
  var configuration = EventSourceRequest.Configuration()
  configuration.maximumFailureCount = 10
  return configuration
}

private func decoded() async throws {
  let request = AF.eventSourceRequest("https://example.com/prices")
  for try await event in request.decodableEvents(of: Price.self) {
    print(event.value.currency, event.value.value)
  }
}

private struct Question: Encodable, Sendable {
  let text: String
}

private func answered(_ question: Question) async throws {
  let request = try JSONParameterEncoder.default.encode(
    question, into: URLRequest(url: "https://example.com/answers", method: .post))
  for try await event in AF.eventSourceRequest(request).events() { print(event.data) }
}

private func refused() async {
  let request = AF.eventSourceRequest("https://example.com/answers")
  do {
    for try await event in request.events() { print(event.data) }
  } catch {
    let refusal = error.underlyingError as? ResponseRefusal
    print(error.responseCode ?? 0, refusal.map { String(decoding: $0.body, as: UTF8.self) } ?? "")
  }
}

private func continued(_ storedID: String) -> EventSourceRequest {
  var configuration = EventSourceRequest.Configuration()
  configuration.lastEventID = storedID
  return AF.eventSourceRequest("https://example.com/prices", configuration: configuration)
}
