import torch

from trainers.pairs import collate_pairs, count_teaching_pairs, teaching_pairs

NONE = -100


def example(*ids, labels):
    return {"input_ids": list(ids), "labels": labels}


def test_the_chosen_sides_come_first_and_all_are_padded_to_the_longest():
    pairs = [
        {
            "chosen": example(5, 6, labels=[NONE, 6]),
            "rejected": example(5, 7, 8, labels=[NONE, 7, 8]),
        },
        {"chosen": example(9, 1, labels=[NONE, 1]), "rejected": example(9, 2, labels=[NONE, 2])},
    ]
    batch = collate_pairs(pairs, pad_id=7)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [9, 1, 7], [5, 7, 8], [9, 2, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]]
    assert batch["labels"].tolist() == [[NONE, 6, NONE], [NONE, 1, NONE], [NONE, 7, 8], [NONE, 2, NONE]]


def test_a_pair_teaches_when_both_sides_keep_a_token_that_is_predicted():
    """The first position predicts nothing before it: a label there alone is none."""
    chosen = [[NONE, 3], [NONE, NONE], [NONE, 3], [4, NONE]]
    rejected = [[NONE, 5], [NONE, NONE], [NONE, NONE], [NONE, 5]]
    labels = torch.tensor(chosen + rejected)
    assert teaching_pairs(labels).tolist() == [True, False, False, False]
    assert count_teaching_pairs([{"labels": labels}, {"labels": labels}]) == 2
