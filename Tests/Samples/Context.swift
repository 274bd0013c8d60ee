import Alamofire
import HTTPTestServer

// The names that samples use without declaring them. A guide declares its own names in an HTML comment before the
// sample; see `Scripts/samples`.

/// Stands for a value that a sample uses. Only samples that do not need such a value can be run.
func value<Value>() -> Value { preconditionFailure("The samples are compiled, and not run.") }

// MARK: Types of the caller

struct User: Codable, Sendable, Equatable {
  var name: String
  var id = 7
  var born = 1815
}

extension User {
  /// Decodes a user. Documents often show the name alone.
  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    name = try values.decode(String.self, forKey: .name)
    id = try values.decodeIfPresent(Int.self, forKey: .id) ?? 7
    born = try values.decodeIfPresent(Int.self, forKey: .born) ?? 1815
  }
}

struct Item: Decodable, Sendable {
  var id: Int
}

struct Price: Decodable, Sendable {
  var currency: String
  var value: Double
}

struct Search: Codable, Sendable {
  var query: String
  var tags: [String]
  var exact: Bool
}

struct Filter: Codable, Sendable {
  var maximumPrice: Double
  var since: Date
}

struct Event: Encodable, Sendable {
  var date: Date
}

struct Question: Encodable, Sendable {
  var text: String
}

struct Problem: Codable, Error {
  var title: String
}

enum CompanyError: Error { case stranger }

struct Client: Sendable {
  func get(_ url: String) async throws -> Data { try await AF.request(url).serializingData().value }
}

struct TokenAdapter: RequestInterceptor {
  let token: String
}

final class RunningDigest: Sendable {
  var contentDigest: String { value() }
  func add(_ chunk: Data) {}
}

// MARK: Values of the caller

let url = "https://example.com/users/1"
let urls = [url]
let token = "secret"
let secret = "secret"
let passphrase = "secret"
let bytes: [UInt8] = []
let rest = "rest"
let data = Data()
let pem = Data()
let pemText = ""
let picture = Data()
let queue = DispatchQueue(label: "samples")

let folder = URL(fileURLWithPath: "/var/lib/samples")
let library = folder
let file = folder.appendingPathComponent("file")
let fileURL = file
let companyCA = file
let temporaryFile = file
let checkpointFile = file
let checkpointURL = file
var handle: FileHandle { value() }
var stream: InputStream { value() }
var chunks: AsyncStream<Data> { value() }

let user = User(name: "Ada")
let search = Search(query: "a b", tags: ["x"], exact: true)
let filter = Filter(maximumPrice: 9.5, since: .distantPast)
let event = Event(date: .distantPast)
let question = Question(text: "Why?")
let client = Client()

func show(_ value: Any, status: Int? = nil) {}
func showMissing() {}
func contentDigest(of data: Data) -> String { value() }
let digest: @Sendable (URL) -> String? = { _ in nil }

// MARK: Values of the library

let session = Session.default
let destination: DownloadRequest.Destination = { _, _ in (file, []) }

var options: TransportOptions {
  get { value() }
  set {}
}

var request: DataRequest { value() }
var urlRequest: URLRequest { value() }
var response: AFDataResponse<Data> { value() }
var error: AFError { value() }
var form: MultipartFormData { value() }
var identity: ClientIdentity { value() }
var credential: Alamofire_Features_Authentication_AuthenticationInterceptorSamples.OAuthCredential {
  value()
}
var trust: ServerTrust { value() }
var leaf: Certificate { value() }
var issuer: Certificate { value() }
var companyRoot: Certificate { value() }

// MARK: Values of the test server

var server: HTTPTestServer { value() }
var authority: TestIdentity { value() }
var stolen: TestIdentity { value() }

// MARK: Values of other packages

var logger: Logger { value() }
