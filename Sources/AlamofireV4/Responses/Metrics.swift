public import Alamofire

/// What a request took, phase by phase. Stands in the place of Foundation's class of this name, which nobody but
/// Foundation can fill.
public typealias URLSessionTaskMetrics = Alamofire::TaskMetrics

/// One exchange of ``URLSessionTaskMetrics``.
public typealias URLSessionTaskTransactionMetrics = Alamofire::TransactionMetrics
