import Alamofire
import FoundationNetworking
import HTTPTestServer

let webSockets = Step("A WebSocket connection") { stage in
  stage.server.enqueue(.webSocket(WebSocketEndpoint(subprotocols: ["chat"])))
  let url = stage.server.url("/chat").replacingOccurrences(of: "http:", with: "ws:")
  let socket = AF.webSocketRequest(to: url, configuration: .protocol("chat")).webSocketTask()
  for await event in socket.streamingMessageEvents() {
    switch event.kind {
    case .connected(let name):
      stage.show("connected with", name ?? "no subprotocol")
      try await socket.send(.string("Hello"))
    case .receivedMessage(.string(let text)):
      stage.show("the echo", text)
      socket.close(sending: .normalClosure)
    case .receivedMessage: throw Surprise("The server has sent another message.")
    case .disconnected(let code, _): stage.show("closed with code", "\(code.rawValue)")
    case .completed(let completion): stage.show("error", completion.error?.localizedDescription ?? "none")
    }
  }
}
