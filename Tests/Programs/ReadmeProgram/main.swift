import Alamofire
import HTTPTestServer

struct Echo: Decodable, Sendable { let headers: [String: String] }

let server = try HTTPTestServer()
let request = AF.request(server.url("/headers")).validate()
print(try await request.serializingDecodable(Echo.self).value.headers)
