"""What benchmark_model prints on boards: the shapes of its text and of its CSV."""

# ruff: noqa: E501, tables are as wide as the program prints them

TEXT = """STARTING!
Log parameter values verbosely: [0]
Num threads: [2]
Graph: [model.tflite]
Loaded model model.tflite
Inference timings in us: Init: 12345, First inference: 55000, Warmup (avg): 4512.2, Inference (avg): 4396.5
Profiling Info for Benchmark Initialization:
============================== Run Order ==============================
\t             [node type]\t          [start]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]\t[Name]
\t         AllocateTensors\t            0.000\t    1.147\t    1.147\t100.000%\t100.000%\t     0.000\t        1\tAllocateTensors/0

Operator-wise Profiling Info for Regular Benchmark Runs:
============================== Run Order ==============================
\t             [node type]\t          [start]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]\t[Name]
\t                 CONV_2D\t            0.000\t    2.132\t    2.000\t 45.500%\t 45.500%\t     0.000\t        1\t[conv;a,  b]:0
\t       DEPTHWISE_CONV_2D\t            2.135\t    2.280\t    2.200\t 50.100%\t 95.600%\t     0.000\t        1\t[dw]:1
\t                 CONV_2D\t            4.135\t    0.180\t    0.190\t  4.400%\t100.000%\t     0.000\t        1\t[late]:2

============================== Top by Computation Time ==============================
\t             [node type]\t          [start]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]\t[Name]
\t       DEPTHWISE_CONV_2D\t            2.135\t    2.280\t    2.200\t 50.100%\t 50.100%\t     0.000\t        1\t[dw]:1
"""

WITHOUT_START = """INFO: count=108 first=8622 curr=8726 min=8268 max=9464 avg=8708.66 std=193 p5=8407 median=8705 p95=8982
INFO: Inference timings in us: Init: 355447, First inference: 45401, Warmup (avg): 9580.26, Inference (avg): 8708.66
INFO: Operator-wise Profiling Info for Regular Benchmark Runs:
============================== Run Order ==============================
\t                             [node type]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]\t[Name]
\t                         EthosuDelegate\t    8.265\t    8.272\t 95.773%\t 95.773%\t     0.000\t        1\t[out]:12
\t                                SOFTMAX\t    0.371\t    0.365\t  4.173%\t100.000%\t     0.000\t        1\t[out]:13
"""

SPACES = """Operator-wise Profiling Info for Regular Benchmark Runs:
============================== Run Order ==============================
                     [node type]         [start]         [first]        [avg ms]            [%]          [cdf%]   [mem KB]   [times called]  [Name]
                        QUANTIZE           0.024           0.094           0.093         0.424%          0.424%      0.000                1   [tfl.quantize]:0
                         CONV_2D           0.117           3.730           3.640        16.512%         16.936%      0.000                1   [a/Relu;b]:1
"""

LITERT = """INFO: [./litert/tools/benchmark_litert_model.h:91] Inference (avg):      0.44 ms
INFO: [./litert/tools/benchmark_litert_model.h:179]
============================== Run Order ==============================
\t                             [node type]\t  [first]\t [avg ms]\t     [%]\t  [cdf%]\t  [mem KB]\t[times called]\t[Name]
\t        LiteRT::Run[buffer registration]\t    0.020\t    0.014\t  3.309%\t  3.309%\t     0.000\t        1\tLiteRT::Run[buffer registration]/0
\t                         AllocateTensors\t    0.291\t    0.291\t  0.022%\t  3.331%\t   452.000\t        0\tAllocateTensors/0
\t                         FULLY_CONNECTED\t    0.538\t    0.382\t 92.948%\t 97.018%\t     0.000\t        1\t[fc]:0
"""

CSV = """node type, first, avg_ms, %, cdf%, mem KB, times called, name
CONV_2D, 9.132, 9.000, 60.0%, 60.0%, 0.000, 1, [a,b]:0
DEPTHWISE_CONV_2D, 3.280, 3.000, 20.0%, 80.0%, 0.000, 1, [c]:1

node type, count, avg_ms, avg %, cdf %, mem KB, times called
CONV_2D, 1, 9.000, 75%, 75%, 0.000, 1
"""

DELEGATED = """External delegate path: [/usr/lib/libneutron_delegate.so]
Inference timings in us: Init: 12345, First inference: 55000, Warmup (avg): 4512.2, Inference (avg): 4.3965e+03
"""
