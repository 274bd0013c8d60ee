import Alamofire

// If the files of a module import both FoundationNetworking and Alamofire, they see two types of each of these names:
// Foundation's, which cannot be filled on Linux, and Alamofire's. Two lines, once in the module, select the latter.

typealias URLSessionTaskMetrics = Alamofire.URLSessionTaskMetrics
typealias URLSessionTaskTransactionMetrics = Alamofire.URLSessionTaskTransactionMetrics
